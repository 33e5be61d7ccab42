// How long it takes from an agent's tool call to a painted toast, and how large the elements are. Prints a table.
//
//   scripts/measure-web [TOASTS]
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { newContext, newPerson, openPage } from './browser.mjs';
import { startHub } from './hub.mjs';
import { serveSite } from './site.mjs';

const count = Number(process.argv[2] ?? 300);
const root = process.env.BELLWIRE_ROOT;

for (const name of ['elements.js', 'react.js']) {
  const file = readFileSync(path.join(root, 'web/dist', name));
  console.log(`${name.padEnd(12)} ${file.length} bytes, ${gzipSync(file, { level: 9 }).length} gzipped, ${brotliCompressSync(file).length} with Brotli`);
}

const site = await serveSite(root);
const hub = await startHub({ BELLWIRE_SERVER_ALLOWED_ORIGINS: site.origin, BELLWIRE_LIMITS_TOASTS_PER_HOUR: '10000' });
site.hub = hub.url;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
try {
  const here = { site, hub, browser };
  const person = await newPerson(here);
  const page = await openPage(here, await newContext(here), person);
  await page.evaluate(() => {
    window.painted = new Map();
    const layer = document.querySelector('bellwire-toaster').shadowRoot.querySelector('bellwire-toast-layer').shadowRoot;
    new MutationObserver((records) => {
      const added = records.flatMap(({ addedNodes }) => [...addedNodes]).flatMap((node) => [...(node.querySelectorAll?.('.toast') ?? [])]);
      // After the next frame was drawn.
      if (added.length > 0) requestAnimationFrame(() => setTimeout(() => added.forEach(({ dataset }) => window.painted.set(dataset.id, performance.timeOrigin + performance.now()))));
    }).observe(layer, { subtree: true, childList: true });
  });
  const now = () => performance.timeOrigin + performance.now();
  const times = [];
  for (let at = 0; at < count; at++) {
    const started = now();
    const id = await person.show({ message: `Toast ${at}`, duration: 1000 });
    const painted = await page.waitForFunction((one) => window.painted.get(one), id).then((handle) => handle.jsonValue());
    times.push(painted - started);
  }
  times.sort((one, other) => one - other);
  const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))].toFixed(1);
  console.log(`tool call to painted toast, ${count} times: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
} finally {
  await browser.close();
  await hub.stop();
  site.close();
}

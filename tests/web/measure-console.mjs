// How long the console takes to its first paint, how large it is, and whether Live keeps up with 10,000 events. Prints a table.
//
//   scripts/measure-web
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { newContext, newPerson } from './browser.mjs';
import { adminSession, openTab } from './console.mjs';
import { startHub, until } from './hub.mjs';

const LOADS = 20;
const EVENTS = 10_000;
/** The events of one call. */
const BATCH = 100;

const assets = path.join(process.env.BELLWIRE_ROOT, 'web/dist/console/assets');
for (const name of readdirSync(assets)) {
  const file = readFileSync(path.join(assets, name));
  console.log(`${name.padEnd(26)} ${file.length} bytes, ${gzipSync(file, { level: 9 }).length} gzipped`);
}

const at = (times, part) => times.sort((one, other) => one - other)[Math.min(times.length - 1, Math.floor(times.length * part))].toFixed(1);
const hub = await startHub({});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
try {
  const here = { hub, browser };
  const person = await newPerson(here);
  await person.talk('chat');
  await firstPaint(here, person);
  await live(here, person);
} finally {
  await browser.close();
  await hub.stop();
}

async function firstPaint(here, person) {
  const times = [];
  for (let load = 0; load < LOADS; load++) {
    // A context of its own: nothing is in its cache.
    const context = await newContext(here);
    const page = await openTab(here, context, adminSession(here, person));
    times.push(await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime).then((handle) => handle.jsonValue()));
    await context.close();
  }
  console.log(`first contentful paint of the inbox, ${LOADS} cold loads: p50 ${at(times, 0.5)} ms, p99 ${at(times, 0.99)} ms`);
}

async function live(here, person) {
  const page = await openTab(here, await newContext(here), adminSession(here, person), '/live');
  await page.getByText('events/s').waitFor();
  await page.evaluate(() => {
    window.frameTimes = [];
    let before = performance.now();
    const frame = (now) => {
      window.frameTimes.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const started = performance.now();
  let last = '';
  for (let sent = 0; sent < EVENTS; sent += BATCH) {
    const events = Array.from({ length: BATCH }, (_, one) => ({ type: 'tool.call.failure', source: 'bench', severity: 'error', payload: { tool_name: `tool_${sent + one}`, error_type: 'timeout' }, conversation_id: 'chat', user_id: person.user }));
    last = (await here.hub.call(here.hub.admin, 'POST', '/v1/events', events)).events.at(-1).event_id;
  }
  const published = performance.now();
  await until('the last event', () => page.locator(`.live-row[data-key="${last}"]`).count());
  const shown = performance.now();
  const frames = await page.evaluate(() => window.frameTimes);
  const skipped = (await page.locator('.rate').textContent()).match(/([\d,]+) entr\w+ skipped/)?.[1] ?? '0';
  const seconds = (published - started) / 1000;
  console.log(`live: ${EVENTS} events in ${seconds.toFixed(1)} s (${Math.round(EVENTS / seconds)}/s); frames p50 ${at(frames, 0.5)} ms, p99 ${at(frames, 0.99)} ms; the last one was shown ${(shown - published).toFixed(0)} ms after its answer; ${skipped} entries skipped`);
}

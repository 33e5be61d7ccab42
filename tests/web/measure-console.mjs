// How long the console takes to its first paint, how large it is, and whether Live keeps up with 10,000 events and a large inbox
// with 2,000 notifications. Prints a table.
//
//   scripts/measure-web
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { newContext, newPerson } from './browser.mjs';
import { adminSession, openTab, personSession } from './console.mjs';
import { startHub, until } from './hub.mjs';

const LOADS = 20;
const EVENTS = 10_000;
/** The events of one call. */
const BATCH = 100;
/** The notifications that the inbox has, those that arrive, and how many calls are made at once. */
const [INBOX, ARRIVALS, CALLS] = [100_000, 2000, 20];

const assets = path.join(process.env.BELLWIRE_ROOT, 'web/dist/console/assets');
for (const name of readdirSync(assets)) {
  const file = readFileSync(path.join(assets, name));
  console.log(`${name.padEnd(26)} ${file.length} bytes, ${gzipSync(file, { level: 9 }).length} gzipped`);
}

const at = (times, part) => times.sort((one, other) => one - other)[Math.min(times.length - 1, Math.floor(times.length * part))].toFixed(1);
const hub = await startHub({ BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR: '10000' });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
try {
  const here = { hub, browser };
  const person = await newPerson(here);
  await person.talk('chat');
  await firstPaint(here, person);
  await live(here, person);
  await inbox(here, person);
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
  await recordFrames(page);
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

/** Notifications arrive in an inbox of which very many items are loaded. */
async function inbox(here, person) {
  const page = await openTab(here, await newContext(here), personSession(person));
  await page.getByText('Nothing unread.').waitFor();
  await page.evaluate((count) => {
    const { inbox } = document.querySelector('bellwire-console').shadowRoot.querySelector('bellwire-inbox-page').workspace.bellwire;
    const item = (at) => ({ id: `00000000-0000-7000-8000-${String(count - at).padStart(12, '0')}`, from: 'hub', kind: 'message', type: 'info', origin: 'bench', source: null, conversation_id: null, title: null, message: `Earlier ${at}`, duration: 0, position: 'top-right', actions: [], created_at: '2026-01-03T15:30:00Z', read_at: null, dismissed_at: null, deliveries: [] });
    inbox.update((state) => ({ ...state, items: new Map(Array.from({ length: count }, (_, at) => [item(at).id, item(at)])) }));
  }, INBOX - ARRIVALS);
  await page.getByText('Earlier 0').waitFor();
  await recordFrames(page);
  const started = performance.now();
  let last = '';
  for (let sent = 0; sent < ARRIVALS; sent += CALLS) last = (await Promise.all(Array.from({ length: CALLS }, (_, one) => person.send(`Number ${sent + one}`)))).sort().at(-1);
  const sent = performance.now();
  await page.locator(`.item[data-id="${last}"]`).waitFor();
  const shown = performance.now();
  const frames = await page.evaluate(() => window.frameTimes);
  const seconds = (sent - started) / 1000;
  console.log(`inbox of ${INBOX}: ${ARRIVALS} notifications in ${seconds.toFixed(1)} s (${Math.round(ARRIVALS / seconds)}/s); frames p50 ${at(frames, 0.5)} ms, p99 ${at(frames, 0.99)} ms; the last one was shown ${(shown - sent).toFixed(0)} ms after its answer`);
}

/** Notes the time between two frames, from now on. */
function recordFrames(page) {
  return page.evaluate(() => {
    window.frameTimes = [];
    let before = performance.now();
    const frame = (now) => {
      window.frameTimes.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}

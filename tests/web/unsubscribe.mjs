// A person presses the button on the page behind the link of a mail, in a real browser, and gets no more mail. The page and its
// answer have the look of the console, in both themes, on a desktop and a phone.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { startHub, until } from './hub.mjs';
import { axe, measure } from './looks.mjs';
import { mailServer } from './mail.mjs';

const server = await mailServer();
try {
  const hub = await startHub({
    BELLWIRE_EMAIL_HOST: '127.0.0.1',
    BELLWIRE_EMAIL_PORT: String(server.port),
    BELLWIRE_EMAIL_TLS: 'none',
  });
  try {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
    try {
      await unsubscribe(hub, browser);
    } finally {
      await browser.close();
    }
  } finally {
    await hub.stop();
  }
} finally {
  server.close();
}
console.log('ok  the unsubscribe page works in a browser');

async function unsubscribe(hub, browser) {
  const [agent, ada] = [await hub.token('agent'), await hub.token('user')];
  const settings = (method, body) => hub.call(ada, method, '/v1/users/ada/settings', body);
  await settings('PATCH', { email: { enabled: true, address: 'ada@example.org' } });
  const first = await until('the mail with the code', () => server.mails[0]);
  const code = first.match(/^\s*(\d{6})\s*$/m)[1];
  await hub.call(ada, 'POST', '/v1/users/ada/email/confirm', { code });
  await hub.call(agent, 'POST', '/v1/tools/send_notification', { arguments: { message: 'Buy milk' } });
  const mail = await until('the mail with the link', () => server.mails[1]);
  const link = mail.match(/^List-Unsubscribe:\s*<([^>]*)>/m)[1];
  assert.ok(link.startsWith(`${hub.url}/u/`), link);

  const page = await browser.newPage();
  const damaged = await page.goto(link.slice(0, -4));
  assert.equal(damaged.status(), 404);
  await page.getByRole('heading', { name: 'This link does not work' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'settings' }).getAttribute('href'), '/settings');
  await looks(page);
  const opened = await page.goto(link);
  assert.equal(opened.status(), 200);
  await looks(page);
  assert.equal((await settings('GET')).email.enabled, true, 'looking changes nothing');
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.request().method() === 'POST'),
    page.getByRole('button').click(),
  ]);
  assert.equal(answer.status(), 200, await answer.text());
  await page.getByRole('heading', { name: 'Done' }).waitFor();
  assert.equal((await settings('GET')).email.enabled, false, 'mail has ended');
  await looks(page);
}

/** The colours and sizes of the console's sign-in page, enough contrast, and nothing for axe to find. */
async function looks(page) {
  for (const [colorScheme, background, surface, accent] of [['light', 'rgb(251, 251, 250)', 'rgb(255, 255, 255)', 'rgb(15, 118, 110)'], ['dark', 'rgb(20, 20, 19)', 'rgb(27, 27, 26)', 'rgb(94, 234, 212)']]) {
    for (const width of [1280, 390]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const seen = await page.evaluate(() => {
        const style = (selector) => getComputedStyle(document.querySelector(selector));
        return { background: style('body').backgroundColor, surface: style('main').backgroundColor, accent: style('.brand').color, heading: style('h1').fontSize, radius: style('main').borderRadius, wide: document.documentElement.scrollWidth - innerWidth };
      });
      assert.deepEqual(seen, { background, surface, accent, heading: '19px', radius: '8px', wide: 0 });
      assert.deepEqual(await axe(page), []);
      const measured = await page.evaluate(measure, 'body');
      assert.ok(measured.length >= 3, String(measured.length));
      assert.deepEqual(measured.filter(({ ratio, least }) => ratio < least), []);
    }
  }
}

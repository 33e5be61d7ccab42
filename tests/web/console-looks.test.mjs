// Every page of the console in both themes, on a desktop and a phone: axe-core finds nothing, contrast is enough, nothing
// sticks out.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newContext, newPerson, settled, stage } from './browser.mjs';
import { adminSession, fillHub, openTab } from './console.mjs';
import { axe, measure } from './looks.mjs';
import { until } from './hub.mjs';

const VIEWS = [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]];
/** Each page, and what shows that it is complete. */
const PAGES = {
  '/inbox': (page) => page.locator('.item').nth(2),
  '/conversations': (page) => page.getByText('Release 2'),
  '/conversations/chat': (page) => page.getByRole('columnheader', { name: 'percent' }),
  '/settings': (page) => page.getByRole('slider', { name: 'Quiet from' }),
  '/live': (page) => page.locator('.live-row').nth(3),
  '/live/EVENT': (page) => page.locator('.path li').nth(1),
  '/deliveries': (page) => page.getByText('Nothing was sent yet.'),
  '/subscribers': (page) => page.locator('.subscriber').nth(10),
  '/subscribers/tool_failure': (page) => page.getByText('What the agent reads'),
  '/playground/show_notification': (page) => page.getByLabel('severity'),
  '/overview': (page) => page.locator('bellwire-plot canvas').nth(5),
  '/nothing': (page) => page.getByRole('heading', { name: 'Not found' }),
};
let [person, event] = [null, null];

const here = stage({ fill: async (here) => {
  person = await newPerson(here);
  await fillHub(here, person);
  for (const type of ['info', 'warning', 'reminder']) await person.send(`A message of type ${type}`, type);
  const read = await person.show({ title: 'It was read', message: 'Some words', severity: 'error', duration: 1, actions: [{ label: 'Go on', action: 'prompt', prompt: 'go on' }] });
  await person.call('PATCH', `/notifications/${read}`, { read: true });
  await person.call('PATCH', '/settings', { quiet_hours: { start: '22:00', end: '07:00', timezone: 'Europe/Berlin' }, muted_origins: ['spammer'], email: { address: 'ada@example.org' } });
  [event] = (await here.hub.call(here.hub.admin, 'GET', '/v1/events?type=tool.call.failure&limit=1')).items;
} });

for (const [scheme, width] of VIEWS) {
  describe(`${scheme}, ${width} pixels wide`, () => {
    test('every page', async () => {
      const context = await newContext(here, { colorScheme: scheme, viewport: { width, height: 900 } });
      const page = await openTab(here, context, adminSession(here, person));
      const found = [];
      for (const [path, complete] of Object.entries(PAGES)) {
        await page.goto(here.hub.url + path.replace('EVENT', event.id));
        await complete(page).first().waitFor({ state: 'attached' });
        if (path === '/inbox') await page.getByRole('button', { name: 'All', exact: true }).click();
        await page.getByRole('heading', { level: 1 }).first().waitFor();
        await settled(page);
        found.push(...(await axe(page)).map((one) => `${path}: ${one}`));
        const measured = await page.evaluate(measure, '.app');
        assert.ok(measured.length > 8, `${path}: ${measured.length}`);
        found.push(...measured.filter(({ ratio, least }) => ratio < least).map((one) => `${path}: ${JSON.stringify(one)}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) found.push(`${path}: ${wide} pixels too wide`);
      }
      assert.deepEqual(found, []);
      assert.deepEqual(context.faults, []);
      await context.close();
    });

    test('signing in', async () => {
      const context = await newContext(here, { colorScheme: scheme, viewport: { width, height: 900 } });
      const page = await context.newPage();
      await page.goto(`${here.hub.url}/#code=wrong`);
      await page.getByText('This link was used before').waitFor();
      assert.deepEqual(await axe(page), []);
      const low = (await page.evaluate(measure, '.sign-in')).filter(({ ratio, least }) => ratio < least);
      assert.deepEqual(low, []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
      await context.close();
    });
  });
}

test('each page is reached and used by keyboard alone', async () => {
  const context = await newContext(here);
  const page = await openTab(here, context, adminSession(here, person));
  const name = () => page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.getAttribute('aria-label') ?? element?.textContent?.trim() ?? '';
  });
  for (const title of ['Conversations', 'Settings', 'Live', 'Deliveries', 'Subscribers', 'Playground', 'Overview']) {
    await page.goto(`${here.hub.url}/inbox`);
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    await until(title, async () => {
      await page.keyboard.press('Tab');
      return (await name()).startsWith(title);
    });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    await until('the focus on the page', () => page.evaluate(() => document.querySelector('bellwire-console').shadowRoot.activeElement?.id === 'page'));
  }
  await context.close();
});

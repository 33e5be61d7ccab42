// What a person can see and read: hostile texts, assistive technology, and contrast measured from the computed styles.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { axe, measure } from './looks.mjs';
import { newContext, newPerson, openPage, settled, stage, toast, toasts } from './browser.mjs';
import { until } from './hub.mjs';

const here = stage();
const VIEWS = [['light', 1200], ['dark', 1200], ['light', 390], ['dark', 390]];
const BUTTONS = [
  { label: 'View Logs', action: 'prompt', prompt: 'show me the build logs' },
  { label: 'Retry Build', action: 'prompt', prompt: 'retry the build' },
  { label: 'Not now', action: 'dismiss' },
];

async function open(colorScheme, width) {
  const person = await newPerson(here);
  const context = await newContext(here, { colorScheme, viewport: { width, height: 900 } });
  const page = await openPage(here, context, person);
  const end = async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  };
  return { person, page, end };
}

/** A page with every kind of toast: severities, buttons, one that failed, one that is longer than it shows. */
async function fill(person, page) {
  for (const severity of ['info', 'success', 'warning', 'error']) {
    await person.show({ severity, title: 'A title', message: 'A message of some words', duration: 0, position: severity === 'error' ? 'top-center' : 'top-right', actions: severity === 'error' ? BUTTONS : [] });
  }
  const failing = await person.show({ message: 'It fails', duration: 0, position: 'bottom-right', actions: BUTTONS.slice(0, 1) });
  await person.show({ message: 'word '.repeat(99), duration: 0, position: 'bottom-right' });
  await page.route('**/actions/*', (route) => route.abort());
  await toast(page, failing).getByRole('button', { name: 'View Logs' }).click();
  await toast(page, failing).getByText('Not sent').waitFor();
  await page.getByRole('button', { name: 'more' }).waitFor();
  await settled(page);
}

async function openInbox(person, page) {
  await person.send('A reminder', 'reminder');
  const read = await person.send('It was read', 'warning');
  await person.call('PATCH', `/notifications/${read}`, { read: true });
  await page.locator('bellwire-inbox .bell').click();
  await page.locator('bellwire-inbox').getByRole('button', { name: 'All', exact: true }).click();
  await until('the list', async () => (await page.locator('bellwire-inbox .item').count()) >= 8);
}

describe('axe finds nothing', () => {
  for (const [scheme, width] of VIEWS) {
    test(`${scheme}, ${width} pixels wide`, async () => {
      const { person, page, end } = await open(scheme, width);
      const check = async (what) => {
        const found = (await axe(page)).map((one) => `${what}: ${one}`);
        assert.deepEqual(found, []);
      };
      await check('empty');
      await fill(person, page);
      await check('toasts');
      await toasts(page).first().focus();
      await until('the expanded stack', async () => (await page.locator('bellwire-toast-layer .behind').count()) === 0);
      await check('expanded');
      await page.getByLabel('Say something').focus();
      await openInbox(person, page);
      await check('inbox');
      await end();
    });
  }
});

describe('contrast is enough', () => {
  for (const [scheme, width] of VIEWS) {
    test(`${scheme}, ${width} pixels wide`, async () => {
      const { person, page, end } = await open(scheme, width);
      await fill(person, page);
      await toasts(page).first().focus();
      await until('the expanded stack', async () => (await page.locator('bellwire-toast-layer .behind').count()) === 0);
      const ofToasts = await page.evaluate(measure, '.layer');
      await page.getByLabel('Say something').focus();
      await page.keyboard.press('F8');
      await until('the focus', async () => (await page.locator('.toast:focus-visible').count()) === 1);
      const ofFocus = await page.evaluate(measure, '.toast:focus-visible');
      await page.getByLabel('Say something').focus();
      await openInbox(person, page);
      const ofInbox = await page.evaluate(measure, '.panel, .bell');
      for (const kind of ['text', 'icon', 'edge', 'control']) assert.ok(ofToasts.some((one) => one.kind === kind), kind);
      for (const kind of ['text', 'icon', 'mark', 'control']) assert.ok(ofInbox.some((one) => one.kind === kind), kind);
      assert.ok(ofToasts.length > 30 && ofInbox.length > 30, `${ofToasts.length} ${ofInbox.length}`);
      assert.ok(ofFocus.some(({ kind }) => kind === 'focus'), 'focus');
      const low = [...ofToasts, ...ofFocus, ...ofInbox].filter(({ ratio, least }) => ratio < least);
      assert.deepEqual(low, []);
      await end();
    });
  }
});

describe('hostile texts are harmless and readable', () => {
  const HOSTILE = [
    '<img src=x onerror="window.hit=1"><script>window.hit=1</script><style>*{display:none}</style>',
    '</p></div><h1 style="position:fixed;inset:0">Sign in again</h1><a href="javascript:window.hit=1">here</a>',
    '${window.hit=1} {{constructor.constructor("window.hit=1")()}} <!--?lit$123$--> <?lit?>',
    'x'.repeat(500),
    'ى'.repeat(250) + '\u202e\u2066gnp.exe\u2069'.repeat(20),
    '\u0301'.repeat(100) + 'Z̵͖͂a̶̫͐l̴̥̈́g̵̣͝o'.repeat(10),
    'line\n'.repeat(99),
  ];

  for (const width of [1200, 390]) {
    test(`${width} pixels wide`, async () => {
      const { person, page, end } = await open('light', width);
      for (const text of HOSTILE) {
        const id = await person.show({
          message: text.slice(0, 500), title: text.slice(0, 100), duration: 0, severity: 'warning',
          actions: [0, 1, 2].map((at) => ({ label: text.slice(0, 50), action: at < 2 ? 'prompt' : 'dismiss', prompt: text.slice(0, 200) })),
        });
        await toast(page, id).waitFor();
        await settled(page);
        const shape = await toast(page, id).evaluate((element) => ({
          elements: element.querySelectorAll('img, script, style, h1, a, iframe').length,
          wide: [element, ...element.querySelectorAll('*')].filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible' && one.clientWidth > 1).map(({ className }) => className),
          right: element.getBoundingClientRect().right,
        }));
        assert.deepEqual(shape, { elements: 0, wide: [], right: shape.right });
        assert.ok(shape.right <= width, `${shape.right}`);
        assert.equal(await page.evaluate(() => window.hit), undefined);
        const said = await toast(page, id).locator('.message').textContent();
        assert.equal(/[\u202a-\u202e\u2066-\u2069]/.test(said), false, 'no reordering');
        await toast(page, id).getByRole('button', { name: 'Dismiss', exact: true }).click();
        await toast(page, id).waitFor({ state: 'detached' });
      }
      await page.locator('bellwire-inbox .bell').click();
      await page.locator('bellwire-inbox').getByRole('button', { name: 'Dismissed', exact: true }).click();
      await until('the list', async () => (await page.locator('bellwire-inbox .item').count()) === HOSTILE.length);
      const list = page.locator('bellwire-inbox .list');
      assert.ok(await list.evaluate((element) => element.scrollWidth <= element.clientWidth), 'nothing sticks out');
      assert.equal(await list.locator('img, script, style, h1, a').count(), 0);
      assert.equal(await page.evaluate(() => window.hit), undefined);
      await end();
    });
  }
});

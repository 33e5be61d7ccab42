// The rules of a toast, in a browser, against the real hub. The page's clock is stopped where time matters.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newContext, newPerson, openPage, stage, toast, toasts } from './browser.mjs';
import { until } from './hub.mjs';

const here = stage();
const BUTTONS = [
  { label: 'View Logs', action: 'prompt', prompt: 'show me the build logs' },
  { label: 'Retry Build', action: 'prompt', prompt: 'retry the build' },
  { label: 'Not now', action: 'dismiss' },
];

/** A person with a page. With `clock`, time stands still until the test moves it. */
async function open(options = {}, clock = false) {
  const person = await newPerson(here);
  const context = await newContext(here, options);
  if (clock) await context.clock.install();
  const page = await openPage(here, context, person);
  if (clock) await context.clock.pauseAt(Date.now() + 2000);
  const end = async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  };
  return { person, context, page, end };
}

/** Where an element stands once it has stopped moving. */
const box = async (locator) => {
  await locator.evaluate((element) => Promise.all((element.closest('.toast') ?? element).getAnimations().map(({ finished }) => finished)));
  return locator.boundingBox();
};
const gone = (locator) => locator.waitFor({ state: 'detached' });
const item = async (person, id) => (await person.call('GET', '/notifications?state=all')).items.find((one) => one.id === id);
/** Moves the mouse away from the toasts. */
const away = (page) => page.mouse.move(5, 700);
const setHidden = (page, hidden) => page.evaluate((state) => {
  Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => state });
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden ? 'hidden' : 'visible');

describe('how it looks', () => {
  test('each severity has its icon, its word and its colour', async () => {
    const { person, page, end } = await open();
    const seen = new Set();
    for (const [severity, word] of Object.entries({ info: 'Info', success: 'Success', warning: 'Warning', error: 'Error' })) {
      const id = await person.show({ severity, title: `A ${severity}`, message: 'Something happened', duration: 0, position: 'bottom-right' });
      const one = toast(page, id);
      await one.waitFor();
      assert.equal(await one.locator('svg').first().locator('path, circle').count() > 0, true);
      assert.equal(await one.locator('.hidden').first().textContent(), word);
      const [edge, icon] = await one.evaluate((element) => [getComputedStyle(element).borderLeftColor, getComputedStyle(element.querySelector('.mark')).color]);
      assert.equal(edge, icon);
      seen.add(`${edge} ${await one.locator('.mark').innerHTML()}`);
      assert.equal(await one.locator('.title').textContent(), `A ${severity}`);
      assert.equal(await one.locator('.message').textContent(), 'Something happened');
      await one.getByRole('button', { name: 'Dismiss' }).click();
    }
    assert.equal(seen.size, 4, 'four colours and four icons');
    await end();
  });

  test('without a title the message takes its weight', async () => {
    const { person, page, end } = await open();
    const [alone, titled] = [await person.show({ duration: 0 }), await person.show({ duration: 0, title: 'Title' })];
    const weight = (id) => toast(page, id).locator('.message').evaluate((element) => getComputedStyle(element).fontWeight);
    await toast(page, titled).waitFor();
    assert.deepEqual([await weight(alone), await weight(titled)], ['600', '400']);
    await end();
  });

  test('it stands at its position, 356 pixels wide, or as wide as a phone allows', async () => {
    for (const [width, phone] of [[1200, false], [390, true]]) {
      const { person, page, end } = await open({ viewport: { width, height: 800 } });
      const ids = {};
      for (const position of ['top-right', 'top-center', 'bottom-right']) ids[position] = await person.show({ position, duration: 0 });
      await toast(page, ids['bottom-right']).waitFor();
      const boxes = Object.fromEntries(await Promise.all(Object.entries(ids).map(async ([position, id]) => [position, await box(toast(page, id))])));
      for (const { width: wide } of Object.values(boxes)) assert.equal(Math.round(wide), phone ? width - 24 : 356);
      const right = ({ x, width: wide }) => Math.round(width - x - wide);
      assert.equal(right(boxes['top-right']), phone ? 12 : 20);
      assert.equal(right(boxes['bottom-right']), phone ? 12 : 20);
      assert.equal(Math.round(boxes['bottom-right'].y + boxes['bottom-right'].height), phone ? 788 : 780);
      assert.equal(Math.round(boxes['top-center'].x + boxes['top-center'].width / 2), width / 2);
      assert.ok(boxes['top-right'].y < 300 && boxes['top-center'].y < 300);
      await end();
    }
  });

  test('it has up to three buttons, the first prompt is primary, and says where it is from and what each sends', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 0, actions: BUTTONS });
    const buttons = toast(page, id).locator('.actions button');
    await buttons.first().waitFor();
    assert.deepEqual(await buttons.allTextContents(), ['View Logs', 'Retry Build', 'Not now']);
    assert.deepEqual(await buttons.evaluateAll((all) => all.map((one) => one.className)), ['primary', '', '']);
    const text = await toast(page, id).locator('.body').textContent();
    assert.match(text, /butler · chat/);
    for (const { prompt } of BUTTONS.slice(0, 2)) assert.ok(text.includes(`sends “${prompt}”`), text);
    const one = await person.show({ duration: 0, actions: BUTTONS.slice(0, 1) });
    await toast(page, one).waitFor();
    const line = (await toast(page, one).locator('.meta').textContent()).replace(/\s+/g, ' ').trim();
    assert.equal(line, 'butler · chat · sends “show me the build logs”');
    await end();
  });

  test('a text of more than six lines ends in more, and can be read', async () => {
    const { person, page, end } = await open();
    const long = await person.show({ message: 'a line of words\n'.repeat(9).trim(), duration: 0 });
    const short = await person.show({ message: 'a line of words\n'.repeat(6).trim(), duration: 0 });
    await toast(page, short).waitFor();
    const more = toast(page, long).getByRole('button', { name: 'more' });
    await more.waitFor();
    assert.equal(await toast(page, short).getByRole('button', { name: 'more' }).count(), 0);
    const height = async () => (await box(toast(page, long).locator('.message'))).height;
    const clamped = await height();
    await more.click();
    await toast(page, long).getByRole('button', { name: 'less' }).waitFor();
    assert.ok((await height()) > clamped * 1.4);
    await end();
  });

  test('it slides and fades in; with reduced motion it only fades', async () => {
    for (const reducedMotion of ['no-preference', 'reduce']) {
      const { person, page, end } = await open({ reducedMotion });
      await page.evaluate(() => {
        window.moved = [];
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (frames, timing) {
          if (this.matches('.toast')) window.moved.push({ properties: [...new Set(frames.flatMap(Object.keys))].sort(), duration: timing.duration });
          return animate.call(this, frames, timing);
        };
      });
      const id = await person.show({ duration: 5000 });
      await toast(page, id).waitFor();
      const expected = reducedMotion === 'reduce' ? ['opacity'] : ['opacity', 'transform'];
      assert.deepEqual(await page.evaluate(() => window.moved), [{ properties: expected, duration: 150 }]);
      assert.equal(await toast(page, id).locator('.bar').isVisible(), reducedMotion !== 'reduce');
      await end();
    }
  });

  test('its buttons and its × are large enough to hit', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, id).waitFor();
    for (const button of await toast(page, id).getByRole('button').all()) {
      const { width, height } = await box(button);
      assert.ok(width >= 24 && height >= 24, `${width} x ${height}`);
    }
    await end();
  });
});

describe('its time', () => {
  test('ends after the duration; it is only hidden and stays unread', async () => {
    const { person, page, context, end } = await open({}, true);
    const id = await person.show({ duration: 3000 });
    await toast(page, id).waitFor();
    await context.clock.runFor(2900);
    assert.equal(await toasts(page).count(), 1);
    await context.clock.runFor(101);
    assert.equal(await toast(page, id).getAttribute('data-phase'), 'leaving');
    await context.clock.runFor(151);
    await gone(toast(page, id));
    assert.equal((await item(person, id)).read_at, null);
    assert.equal(await page.locator('bellwire-inbox .badge').textContent(), '1');
    await end();
  });

  test('never ends with duration 0', async () => {
    const { person, page, context, end } = await open({}, true);
    const id = await person.show({ duration: 0 });
    await toast(page, id).waitFor();
    await context.clock.runFor(600_000);
    assert.equal(await toast(page, id).getAttribute('data-phase'), 'open');
    assert.equal(await toast(page, id).locator('.bar').count(), 0);
    await end();
  });

  for (const [what, pause, resume] of [
    ['the pointer is on it', (page, id) => toast(page, id).hover(), away],
    ['it has the focus', (page, id) => toast(page, id).focus(), (page) => page.getByLabel('Say something').focus()],
    ['the tab is hidden', (page) => setHidden(page, true), (page) => setHidden(page, false)],
  ]) {
    test(`stops while ${what}, and goes on with what is left`, async () => {
      const { person, page, context, end } = await open({}, true);
      const id = await person.show({ duration: 5000 });
      await toast(page, id).waitFor();
      await context.clock.runFor(2000);
      await pause(page, id);
      const playing = () => toast(page, id).locator('.bar').evaluate((bar) => bar.getAnimations()[0].playState);
      await until('the bar to stop', async () => (await playing()) === 'paused');
      await context.clock.runFor(60_000);
      assert.equal(await toasts(page).count(), 1);
      await resume(page, id);
      await until('the bar to go on', async () => (await playing()) === 'running');
      await context.clock.runFor(2900);
      assert.equal(await toasts(page).count(), 1);
      await context.clock.runFor(200);
      assert.equal(await toasts(page).count(), 0);
      await end();
    });
  }
});

describe('a stack', () => {
  test('shows three, counts the rest, and expands under the pointer and with the focus', async () => {
    const { person, page, end } = await open();
    for (let at = 0; at < 7; at++) await person.show({ message: `Toast ${at}`, duration: 30_000 });
    const behind = page.locator('bellwire-toast-layer .behind');
    await until('seven toasts', async () => (await behind.count()) && (await behind.textContent()).trim() === '+4');
    assert.deepEqual(await toasts(page).locator('.message').allTextContents(), ['Toast 6', 'Toast 5', 'Toast 4']);
    await toasts(page).first().hover();
    await until('all toasts', async () => (await toasts(page).count()) === 7);
    await away(page);
    await until('three toasts', async () => (await toasts(page).count()) === 3);
    await toasts(page).first().focus();
    await until('all toasts', async () => (await toasts(page).count()) === 7);
    await end();
  });

  test('has persistent and actionable toasts in front', async () => {
    const { person, page, end } = await open();
    await person.show({ message: 'Stays', duration: 0 });
    await person.show({ message: 'Asks', duration: 30_000, actions: BUTTONS.slice(0, 1) });
    for (let at = 0; at < 3; at++) await person.show({ message: `Plain ${at}`, duration: 30_000 });
    await until('five toasts', async () => (await page.locator('bellwire-toast-layer .behind').count()) === 1);
    await until('the last one', async () => (await toasts(page).last().locator('.message').textContent()) === 'Plain 2');
    assert.deepEqual(await toasts(page).locator('.message').allTextContents(), ['Asks', 'Stays', 'Plain 2']);
    await end();
  });

  test('expands by a tap on «+N» and collapses by a tap elsewhere', async () => {
    const { person, page, end } = await open({ hasTouch: true });
    for (let at = 0; at < 5; at++) await person.show({ message: `Toast ${at}`, duration: 30_000 });
    await page.getByRole('button', { name: 'Show 2 more' }).tap();
    await until('all toasts', async () => (await toasts(page).count()) === 5);
    await page.touchscreen.tap(20, 700);
    await until('three toasts', async () => (await toasts(page).count()) === 3);
    await end();
  });
});

describe('by keyboard and touch', () => {
  test('F8 moves the focus to the newest, Esc dismisses it everywhere, the focus returns', async () => {
    const { person, page, end } = await open();
    const [first, second] = [await person.show({ duration: 0 }), await person.show({ duration: 0, position: 'bottom-right' })];
    await toast(page, second).waitFor();
    const input = page.getByLabel('Say something');
    await input.focus();
    assert.equal(await toast(page, first).evaluate((element) => element.matches(':focus-within')), false, 'a toast takes no focus by itself');
    await page.keyboard.press('F8');
    await until('the focus', () => toast(page, second).evaluate((element) => element.matches(':focus')));
    await page.keyboard.press('Escape');
    await gone(toast(page, second));
    assert.ok(await input.evaluate((element) => element.matches(':focus')));
    assert.notEqual((await until('the dismissal', async () => (await person.call('GET', '/notifications?state=dismissed')).items[0])).dismissed_at, null);
    assert.equal(await toasts(page).count(), 1);
    await page.keyboard.press('F8');
    await page.keyboard.press('F8');
    assert.ok(await input.evaluate((element) => element.matches(':focus')), 'F8 again returns the focus');
    await end();
  });

  test('the hotkey can be another', async () => {
    const { person, page, end } = await open();
    await page.locator('bellwire-toaster').evaluate((element) => element.setAttribute('hotkey', 'Alt+N'));
    const id = await person.show({ duration: 0 });
    await toast(page, id).waitFor();
    await page.keyboard.press('F8');
    assert.equal(await toast(page, id).evaluate((element) => element.matches(':focus')), false);
    await page.keyboard.press('Alt+n');
    await until('the focus', () => toast(page, id).evaluate((element) => element.matches(':focus')));
    await end();
  });

  test('after a press by keyboard the focus returns', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, id).waitFor();
    await page.getByLabel('Say something').focus();
    await page.keyboard.press('F8');
    await until('the focus', () => toast(page, id).evaluate((element) => element.matches(':focus')));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await toast(page, id).getByText('Sent').waitFor();
    await gone(toast(page, id));
    assert.ok(await page.getByLabel('Say something').evaluate((element) => element.matches(':focus')));
    await end();
  });

  for (const [position, dx, dy] of [['top-right', 1, 0], ['top-center', 0, -1], ['bottom-right', 1, 0]]) {
    test(`a swipe dismisses at ${position}; a short or wrong one does not`, async () => {
      const { person, page, context, end } = await open({ hasTouch: true, viewport: { width: 390, height: 800 } });
      const id = await person.show({ position, duration: 0 });
      await toast(page, id).waitFor();
      const session = await context.newCDPSession(page);
      const swipe = async (pixels, [x, y] = [dx, dy]) => {
        const { x: left, y: top, width, height } = await box(toast(page, id));
        const point = (at) => [{ x: left + width / 2 + x * at, y: top + height / 2 + y * at }];
        await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: point(0) });
        for (const part of [0.3, 0.6, 1]) {
          await session.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: point(pixels * part) });
          await new Promise((later) => setTimeout(later, 60));
        }
        await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
      };
      await swipe(25);
      await swipe(80, [-dx, -dy]);
      assert.equal(await toast(page, id).getAttribute('data-phase'), 'open');
      assert.equal(await toast(page, id).evaluate((element) => element.style.translate), '');
      await swipe(90);
      await gone(toast(page, id));
      await until('the dismissal', async () => (await person.call('GET', '/notifications?state=dismissed')).items.length === 1);
      await end();
    });
  }

  test('live regions are there before their text; errors are assertive, and buttons are announced', async () => {
    const { person, page, end } = await open();
    const region = (live) => page.locator(`bellwire-toast-layer [aria-live=${live}]`);
    assert.deepEqual([await region('polite').count(), await region('assertive').count()], [1, 1]);
    await page.evaluate(() => {
      window.regions = [...document.querySelector('bellwire-toaster').shadowRoot.querySelector('bellwire-toast-layer').shadowRoot.querySelectorAll('[aria-live]')];
    });
    await person.show({ title: 'Backup', message: 'It is done', severity: 'success' });
    await person.show({ message: 'Build failed', severity: 'error', actions: BUTTONS });
    await until('the polite text', async () => (await region('polite').textContent()).includes('Success: Backup. It is done'));
    await until('the assertive text', async () => (await region('assertive').textContent()).includes('Error: Build failed 3 actions available, press F8.'));
    assert.ok(await page.evaluate(() => window.regions.every((element) => element.isConnected && element.textContent !== '')), 'the same regions');
    await end();
  });
});

describe('a button', () => {
  test('sends its prompt to the agent: the next injection holds it; the toast says Sent for 1.2 seconds', async () => {
    const { person, page, context, end } = await open({}, true);
    const id = await person.show({ message: 'Build failed', severity: 'error', duration: 0, actions: BUTTONS });
    await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
    await toast(page, id).getByText('Sent').waitFor();
    await away(page);
    await context.clock.runFor(1100);
    assert.equal(await toast(page, id).getAttribute('data-phase'), 'done');
    await context.clock.runFor(101);
    assert.equal(await toast(page, id).getAttribute('data-phase'), 'leaving');
    await page.getByText('The agent reads: show me the build logs').waitFor();
    const { block } = await person.inject('call_1');
    assert.ok(block.includes('- [user] "pressed \\"View Logs\\" (offered by butler): show me the build logs"'), block);
    assert.equal((await person.inject('call_2')).block, '', 'once');
    await end();
  });

  test('of dismiss closes it, and only that', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, id).getByRole('button', { name: 'Not now' }).click();
    await gone(toast(page, id));
    await until('the dismissal', async () => (await person.call('GET', '/notifications?state=dismissed')).items.length === 1);
    assert.equal((await person.inject('call_1')).block, '');
    await end();
  });

  test('whose request fails stays, says why, and can be retried', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 2000, actions: BUTTONS });
    await page.route('**/actions/*', (route) => route.abort());
    await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
    await toast(page, id).getByText('Not sent: the hub cannot be reached.').waitFor();
    await page.locator('bellwire-toast-layer [aria-live=assertive]').getByText('Not sent: the hub cannot be reached.').waitFor({ state: 'attached' });
    await away(page);
    assert.equal(await toast(page, id).getAttribute('data-phase'), 'busy', 'its time has stopped');
    await page.unroute('**/actions/*');
    await toast(page, id).getByRole('button', { name: 'Retry' }).click();
    await toast(page, id).getByText('Sent').waitFor();
    await page.locator('bellwire-toast-layer [aria-live=polite]').getByText('Sent').waitFor({ state: 'attached' });
    assert.match((await person.inject('call_1')).block, /show me the build logs/);
    await end();
  });

  test('that was pressed elsewhere first says what was pressed', async () => {
    const { person, page, end } = await open();
    const id = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, id).waitFor();
    // The page does not hear of the other press before its own.
    await page.route('**/actions/0', async (route) => {
      await person.call('POST', `/notifications/${id}/actions/1`);
      await route.continue();
    });
    await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
    await toast(page, id).getByText('Already answered: Retry Build').waitFor();
    await gone(toast(page, id));
    await end();
  });

  test('of a notification without a conversation calls the page alone', async () => {
    const { person, page, end } = await open();
    const id = await person.showLoose({ duration: 0, actions: BUTTONS });
    await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
    await page.getByText('You say: show me the build logs').waitFor();
    await until('the dismissal', async () => (await person.call('GET', '/notifications?state=dismissed')).items.length === 1);
    await end();
  });
});

describe('above modal dialogs', () => {
  /** Whether the toast is what a person would hit at its middle. */
  const onTop = (page, id) => toast(page, id).evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    let hit = document.elementFromPoint(x, y);
    while (hit?.shadowRoot && hit.shadowRoot.elementFromPoint(x, y) !== hit) hit = hit.shadowRoot.elementFromPoint(x, y);
    return element.contains(hit);
  });
  const openDialog = (page) => page.evaluate(() => {
    const dialog = document.createElement('dialog');
    dialog.append(Object.assign(document.createElement('button'), { textContent: 'In the dialog' }));
    dialog.id = 'modal';
    document.body.append(dialog);
    dialog.showModal();
  });

  test('a toast that comes later can be seen and pressed; the dialog stays open on Esc', async () => {
    const { person, page, end } = await open();
    await openDialog(page);
    const id = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, id).waitFor();
    assert.ok(await onTop(page, id));
    await page.keyboard.press('F8');
    await until('the focus', () => toast(page, id).evaluate((element) => element.matches(':focus')));
    await page.keyboard.press('Escape');
    await gone(toast(page, id));
    assert.equal(await page.evaluate(() => document.querySelector('#modal').open), true);
    const next = await person.show({ duration: 0, actions: BUTTONS });
    await toast(page, next).getByRole('button', { name: 'View Logs' }).click();
    await toast(page, next).getByText('Sent').waitFor();
    await end();
  });

  test('a toast that was there before is above it, and is still there when the dialog closes or is removed', async () => {
    for (const close of [() => document.querySelector('#modal').close(), () => document.querySelector('#modal').remove()]) {
      const { person, page, end } = await open();
      const id = await person.show({ duration: 0, actions: BUTTONS });
      await toast(page, id).waitFor();
      await openDialog(page);
      await until('the toast on top', () => onTop(page, id));
      await page.evaluate(close);
      await until('the toast at home', () => page.evaluate(() => !!document.querySelector('bellwire-toaster').shadowRoot.querySelector('bellwire-toast-layer')));
      assert.ok(await onTop(page, id));
      await toast(page, id).getByRole('button', { name: 'Not now' }).click();
      await gone(toast(page, id));
      await end();
    }
  });
});

describe('after a reload', () => {
  test('a persistent toast is there again until it is dismissed or answered anywhere', async () => {
    const { person, page, end } = await open();
    const ids = [];
    for (const change of [{}, {}, { actions: BUTTONS }]) ids.push(await person.show({ duration: 0, ...change }));
    await person.show({ duration: 1000, position: 'bottom-right' });
    await until('four toasts', async () => (await toasts(page).count()) === 4);
    await page.reload();
    await until('the persistent ones', async () => (await toasts(page).count()) === 3);
    await person.call('DELETE', `/notifications/${ids[0]}`);
    await gone(toast(page, ids[0]));
    await person.call('PATCH', `/notifications/${ids[1]}`, { read: true });
    await gone(toast(page, ids[1]));
    await person.call('POST', `/notifications/${ids[2]}/actions/0`);
    await gone(toast(page, ids[2]));
    await page.reload();
    await page.locator('[data-connection=live]').waitFor({ state: 'attached' });
    await person.show({ message: 'The last one', duration: 0 });
    await page.getByText('The last one').waitFor();
    assert.equal(await toasts(page).count(), 1);
    await end();
  });

  test('what the person muted or switched off is not shown', async () => {
    const { person, page, end } = await open();
    await person.show({ duration: 0 });
    await until('the toast', async () => (await toasts(page).count()) === 1);
    for (const settings of [{ muted_origins: ['butler'] }, { muted_origins: [], toasts: { enabled: false } }]) {
      await person.call('PATCH', '/settings', settings);
      const loaded = page.waitForResponse((response) => response.url().endsWith('/settings'));
      await page.reload();
      await loaded;
      await page.locator('bellwire-inbox .badge').waitFor();
      assert.equal(await toasts(page).count(), 0);
    }
    await end();
  });
});

// Pictures of the elements, at desktop and phone size, light and dark, for people to look at.
//
//   make screenshots
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { newContext, newPerson, openPage, settled, toast, toasts } from './browser.mjs';
import { startHub } from './hub.mjs';
import { serveSite } from './site.mjs';

const root = process.env.BELLWIRE_ROOT;
const folder = path.join(root, 'target/screenshots');
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const prompt = (label, text) => ({ label, action: 'prompt', prompt: text });
const LATER = { label: 'Later', action: 'dismiss' };

await mkdir(folder, { recursive: true });
const site = await serveSite(root);
const hub = await startHub({ BELLWIRE_SERVER_ALLOWED_ORIGINS: site.origin, BELLWIRE_LIMITS_TOASTS_PER_HOUR: '1000' });
site.hub = hub.url;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
try {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) await take({ site, hub, browser }, `${size}-${colorScheme}`, { viewport, colorScheme });
  }
} finally {
  await browser.close();
  await hub.stop();
  site.close();
}

async function take(here, name, options) {
  const person = await newPerson(here);
  const context = await newContext(here, options);
  const page = await openPage(here, context, person);
  const shoot = async (what) => {
    await settled(page);
    await page.screenshot({ path: path.join(folder, `${what}-${name}.png`) });
  };
  const failed = await person.show({
    title: 'Build failure', message: 'Build failed - 3 tests failing. Check logs for details.', severity: 'error', duration: 0,
    actions: [prompt('View logs', 'show me the detailed build logs'), prompt('Retry build', 'retry the build'), { label: 'Dismiss', action: 'dismiss' }],
  });
  await person.show({ title: 'Budget alert', message: "Budget threshold exceeded - you've spent $47,500 of $50,000", severity: 'warning', duration: 20_000, actions: [prompt('View spending', 'show me detailed cost breakdown')] });
  await person.show({ title: 'New agent', message: "'Analytics Pro' is now available in the registry", severity: 'info', duration: 0, position: 'top-center', actions: [prompt('View agent', 'tell me about Analytics Pro'), LATER] });
  const last = await person.show({ message: 'Database backup completed', severity: 'success', duration: 20_000, position: 'bottom-right' });
  await toast(page, last).waitFor();
  await shoot('toasts');
  await person.send('Your passport expires on 3 May', 'reminder');
  await person.call('POST', `/notifications/${failed}/actions/1`);
  await page.locator('bellwire-inbox .bell').click();
  await page.locator('bellwire-inbox').getByRole('button', { name: 'All', exact: true }).click();
  await page.locator('bellwire-inbox').getByText('Answered: Retry build').waitFor();
  await shoot('inbox');
  await page.keyboard.press('Escape');
  await page.mouse.move(5, 700);
  for (let at = 1; at <= 6; at++) await person.show({ message: `Sync ${at} of 6 done`, severity: 'success', duration: 20_000 });
  await page.locator('bellwire-toast-layer .behind').waitFor();
  await shoot('stack');
  await toasts(page).first().focus();
  await shoot('expanded');
  await context.close();
}

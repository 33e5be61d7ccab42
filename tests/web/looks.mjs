// What assistive technology and weak eyes need, measured in a page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The violations that axe-core finds, in words. */
export async function axe(page) {
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('\n')}`);
}

/** Measures, in the page: texts, icons, edges and the borders of controls, against what is behind them. */
export function measure(selector) {
  const channels = (text) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d');
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return { rgb: [red, green, blue], alpha: alpha / 255 };
  };
  const luminance = ({ rgb }) => {
    const [red, green, blue] = rgb.map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (one, other) => {
    const [high, low] = [luminance(channels(one)), luminance(channels(other))].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const parent = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
  const background = (element) => {
    for (let at = element; at; at = parent(at)) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour).alpha === 1) return colour;
    }
    return 'white';
  };
  const all = (root) => [...root.querySelectorAll('*')].flatMap((element) => [element, ...(element.shadowRoot ? all(element.shadowRoot) : [])]);
  const inside = all(document).filter((element) => element.closest(selector) && element.checkVisibility() && !element.closest('.hidden'));
  const found = [];
  const add = (kind, element, colour, behind, least) => found.push({ kind, text: element.textContent.trim().slice(0, 30), colour, behind, ratio: ratio(colour, behind), least });
  for (const element of inside) {
    const style = getComputedStyle(element);
    const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== '');
    if (hasText) add('text', element, style.color, background(element), 4.5);
    if (element.matches('svg')) add('icon', element.parentElement, style.color, background(element), 3);
    if (element.matches('.toast')) add('edge', element, style.borderLeftColor, style.backgroundColor, 3);
    if (element.matches(':focus-visible')) add('focus', element, style.outlineColor, style.backgroundColor, 3);
    if (element.matches('.dot, .toast > .bar, .knob, .handle, .now')) add('mark', element, style.backgroundColor, background(parent(element)), 3);
    const isControl = element.matches('button:not(.icon, .link, .plain, .behind button), select, input:not([type=checkbox], [type=radio]), textarea');
    if (isControl) add('control', element, style.borderTopColor, background(parent(element)), 3);
  }
  return found;
}

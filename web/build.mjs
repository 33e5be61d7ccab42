// Builds dist/: one ES module per entry, their types, and the console. The output depends only on the sources and the pinned
// packages.
//
//   node build.mjs [FOLDER]
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** The largest size of the elements, gzipped. */
const ELEMENTS_MAX = 40 * 1024;

const folder = process.argv[2] ?? 'dist';
await rm(folder, { recursive: true, force: true });
const shared = {
  bundle: true, format: 'esm', target: ['es2022'], minify: true, legalComments: 'none', charset: 'utf8', logLevel: 'warning',
};
/** The React components use the elements of the module beside them, so that a page has them once. */
const besideElements = {
  name: 'beside-elements',
  setup: ({ onResolve }) => { onResolve({ filter: /^\.\/elements\.ts$/ }, () => ({ path: './elements.js', external: true })); },
};
const notice = '/*! Bellwire, Apache-2.0; with Lit, BSD-3-Clause, and icons of Lucide, ISC */';
const consoleNotice = '/*! Bellwire, Apache-2.0; with Lit, BSD-3-Clause, icons of Lucide, ISC, uPlot and uqr, MIT */';
await build({ ...shared, entryPoints: ['src/elements.ts'], outfile: `${folder}/elements.js`, inject: ['src/server-side.ts'], banner: { js: notice } });
await build({ ...shared, entryPoints: ['src/react.ts'], outfile: `${folder}/react.js`, external: ['react'], plugins: [besideElements] });
execFileSync('node_modules/.bin/tsc', ['--project', 'tsconfig.types.json', '--outDir', `${folder}/types`], { stdio: 'inherit' });
await keepReachable(`${folder}/types`, ['elements.d.ts', 'react.d.ts']);

await buildConsole(`${folder}/console`);

const gzipped = gzipSync(await readFile(`${folder}/elements.js`), { level: 9 }).length;
console.log(`${folder}/elements.js: ${gzipped} bytes gzipped`);
if (gzipped > ELEMENTS_MAX) throw new Error(`elements.js has ${gzipped} bytes gzipped, more than ${ELEMENTS_MAX}`);

/** Removes the declarations that no entry needs, and writes the imports as users of the package resolve them. */
async function keepReachable(folder, entries) {
  const kept = new Set();
  const visit = async (file) => {
    if (kept.has(file)) return;
    kept.add(file);
    const text = (await readFile(file, 'utf8')).replace(/(['"])(\.{1,2}\/[^'"]*)\.ts\1/g, '$1$2.js$1');
    await writeFile(file, text);
    for (const [, name] of text.matchAll(/['"](\.{1,2}\/[^'"]*)\.js['"]/g)) await visit(path.join(path.dirname(file), `${name}.d.ts`));
  };
  for (const entry of entries) await visit(path.join(folder, entry));
  for await (const file of glob(`${folder}/**/*.d.ts`)) if (!kept.has(path.normalize(file))) await rm(file);
}

/** The console: modules and files with a hash in their names, the page, and the list of all for Rust. */
async function buildConsole(console) {
  const { metafile } = await build({
    ...shared, entryPoints: { console: 'src/console/main.ts' }, outdir: `${console}/assets`, entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]', splitting: true, metafile: true, loader: { '.css': 'text' }, banner: { js: consoleNotice },
  });
  const built = Object.entries(metafile.outputs);
  const [script] = built.find(([, { entryPoint }]) => entryPoint === 'src/console/main.ts');
  const names = {
    script: `/assets/${path.basename(script)}`,
    style: await hashed(console, 'src/console/console.css'),
    icon: await hashed(console, 'src/console/icon.svg'),
  };
  const page = await readFile('src/console/index.html', 'utf8');
  await writeFile(`${console}/index.html`, page.replace(/\{\{(\w+)\}\}/g, (_, name) => names[name]));
  const files = await Array.fromAsync(glob('**/*.*', { cwd: console }));
  const rows = files.sort().map((name) => `    ("${name}", include_bytes!("${name}")),\n`);
  await writeFile(`${console}/files.rs`, `&[\n${rows.join('')}]\n`);
}

/** Copies a file into the assets, under a name with its hash; returns its address. */
async function hashed(console, file) {
  const content = await readFile(file);
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 8).toUpperCase();
  const { name, ext } = path.parse(file);
  await mkdir(`${console}/assets`, { recursive: true });
  await writeFile(`${console}/assets/${name}-${hash}${ext}`, content);
  return `/assets/${name}-${hash}${ext}`;
}

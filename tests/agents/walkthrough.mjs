// The steps of docs/agents.md for each harness, as they are printed, in an empty home: with the real programs and a scripted model,
// and for Cursor and Copilot CLI, which cannot be driven here, with the input of their hooks.
//
//   node walkthrough.mjs [HARNESS...]       BELLWIRE is the program; run by scripts/test-agents, with the network cut
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { HARNESSES } from './harnesses.mjs'
import { until } from './hub.mjs'
import { ScriptedModel } from './model.mjs'

const PAGE = readFileSync('agents.md', 'utf8')

// The command that a reader types, and what stands for the person who allows the command.
const COMMANDS = {
  'claude-code': { title: 'Claude Code', command: 'claude', run: program => `exec '${program}' --dangerously-skip-permissions "$@"` },
  codex: { title: 'Codex', command: 'codex', run: program => `exec '${program}' "$1" --skip-git-repo-check "\${@:2}"` },
  gemini: { title: 'Gemini CLI', command: 'gemini', run: program => `exec '${program}' '${path.resolve('node_modules/@google/gemini-cli/bundle/gemini.js')}' -m gemini-2.5-pro "$@"` },
  opencode: { title: 'OpenCode', command: 'opencode', run: program => `exec '${program}' "$1" --auto "\${@:2}"` },
  cursor: {
    title: 'Cursor',
    hooks: folder => [
      [[], { hook_event_name: 'beforeSubmitPrompt', conversation_id: 's1', cursor_version: '2', workspace_roots: [folder], cwd: folder }],
      [[], { hook_event_name: 'postToolUse', conversation_id: 's1', cursor_version: '2', workspace_roots: [folder], cwd: folder, tool_name: 'Shell', tool_use_id: 'c1' }],
    ],
  },
  copilot: {
    title: 'Copilot CLI',
    hooks: folder => [
      [['userPromptSubmitted'], { sessionId: 's1', cwd: folder, prompt: 'Work.' }],
      [['postToolUse'], { sessionId: 's1', cwd: folder, toolName: 'bash', toolArgs: '{}', toolResult: { resultType: 'success' } }],
    ],
  },
}

/** The fenced blocks of a section, as [language, text]. */
function blocks(title) {
  const [, text] = PAGE.split(new RegExp(`^##+ ${title}\n`, 'm'))
  assert.ok(text, `the page has no section ${title}`)
  return [...text.split(/^##+ /m)[0].matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, body]) => [language, body])
}

/** The lines of a text, without a boundary. */
const lines = text => text.trim().replaceAll('\\n', '\n').replaceAll('\\"', '"').replace(/ id="\w{8}"/g, ' id="…"').split('\n')

/** Whether the text has these lines, in this order: a harness writes words of its own around them. */
function inOrder(expected, text) {
  const found = lines(text)
  return lines(expected).every(line => found.splice(0, found.findIndex(one => one.includes(line)) + 1).length > 0)
}

class Reader {
  static async start(name) {
    const reader = new Reader()
    reader.home = await mkdtemp(path.join(os.tmpdir(), `bellwire-reader-${name}-`))
    reader.folder = path.join(reader.home, 'project')
    await mkdir(reader.folder)
    const bin = path.join(reader.home, '.local/bin')
    await mkdir(bin, { recursive: true })
    await copyFile(process.env.BELLWIRE, path.join(bin, 'bellwire'))
    reader.model = await ScriptedModel.start()
    const { command, run } = COMMANDS[name]
    if (command) {
      await HARNESSES[name].prepare(reader.home, reader.model.url)
      await writeFile(path.join(bin, command), `#!/usr/bin/env bash\n${run(HARNESSES[name].program)}\n`)
      await chmod(path.join(bin, command), 0o755)
    }
    const settings = HARNESSES[name]?.environment(reader.model.url)
    // Any port: another hub may run on this machine.
    reader.env = { PATH: `${bin}:${process.env.PATH}`, HOME: reader.home, TERM: 'dumb', BELLWIRE_SERVER_LISTEN: '127.0.0.1:0', ...settings }
    return reader
  }

  /** Types a block, or a command and its input, into a shell in the folder; resolves to what it printed. */
  async types(script, input = '') {
    const child = spawn('bash', ['-eu', '-c', script], { cwd: this.folder, env: this.env, stdio: ['pipe', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    child.stdout.on('data', chunk => { out += chunk })
    child.stderr.on('data', chunk => { err += chunk })
    child.stdin.end(input)
    const timer = setTimeout(() => child.kill('SIGKILL'), 90_000)
    const code = await new Promise(resolve => child.on('close', resolve))
    clearTimeout(timer)
    assert.equal(code, 0, `${script}\n${out}\n${err}`)
    return out
  }

  /** A session that runs a command, during which `act` happens; resolves to the requests of its model. */
  async session(name, script, act) {
    const gate = path.join(this.folder, 'gate')
    const { tool, arguments: made } = HARNESSES[name].shell
    const command = `touch '${gate}.open'; until [ -e '${gate}.go' ]; do sleep 0.05; done; echo slept`
    this.model.play([{ tool, arguments: tool => made(command, tool) }])
    const ended = this.types(script)
    await Promise.race([until(() => existsSync(`${gate}.open`), 'the command runs'), ended])
    await act()
    await writeFile(`${gate}.go`, '')
    await ended
    return this.model.turns.map(turn => turn.map(([, text]) => (HARNESSES[name].unescape ?? (text => text))(text)).join('\n'))
  }

  /** The same with the input of hooks; resolves to what the last of them gave. */
  async hooks(name, act) {
    const [first, last] = COMMANDS[name].hooks(this.folder)
    const hook = ([event, input]) => this.types(`bellwire hook ${name} ${event.join(' ')}`, JSON.stringify(input))
    await hook(first)
    await act()
    return [await hook(first).then(() => ''), await hook(last)]
  }

  async close() {
    await this.types('bellwire stop').catch(error => console.error(error.message))
    this.model.close()
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function follow(name) {
  const reader = await Reader.start(name)
  const [start] = blocks('First steps').filter(([, body]) => body.startsWith('bellwire '))
  const steps = blocks(COMMANDS[name].title)
  const commands = steps.filter(([language]) => language === 'sh').map(([, body]) => body)
  const shown = steps.filter(([language]) => language === 'text').map(([, body]) => body)
  try {
    await reader.types(start[1])
    await reader.types(commands.shift())
    await HARNESSES[name]?.trust?.(reader.env, reader.folder)
    const session = COMMANDS[name].command && commands.shift()
    const elsewhere = commands.shift()
    const act = async () => assert.match(await reader.types(elsewhere), /12 tests passed/)
    const requests = session ? await reader.session(name, session, act) : await reader.hooks(name, act)
    assert.equal(requests.length, 2, requests.join('\n---\n'))
    const news = session ? shown.shift() : '- [bellwire run] task_done: build - 12 tests passed'
    assert.ok(!requests[0].includes('12 tests passed'))
    assert.ok(inOrder(news, requests[1]), `the page promises\n${news}\n\nand the model reads\n${requests[1]}`)
    const doctor = await reader.types(commands.shift())
    assert.ok(doctor.includes(shown.shift().trim()), doctor)
    await reader.types(commands.shift())
    assert.deepEqual([commands, shown], [[], []], 'every block is used')
    assert.doesNotMatch(await reader.types('bellwire doctor'), new RegExp(`^\\w+ +${name} `, 'm'), 'nothing is left')
    console.log(`ok  ${name}, as a reader of docs/agents.md`)
  } catch (error) {
    console.error(`FAILED  ${name}, as a reader of docs/agents.md\n${error.stack}\n${reader.model.log.join('\n')}`)
    process.exitCode = 1
  } finally {
    await reader.close()
  }
}

const wanted = process.argv.slice(2)
for (const name of Object.keys(COMMANDS).filter(name => wanted.length === 0 || wanted.includes(name))) await follow(name)

// How each harness is started without an account, and where a hook's text must stand in its request.
import { spawn } from 'node:child_process'
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { AppServer, ended } from './codex.mjs'

const modules = path.resolve('node_modules')
const native = `${process.platform}-${process.arch}`

/** Writes JSON or text below a folder. */
async function write(folder, name, content) {
  const file = path.join(folder, name)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
}

export const HARNESSES = {
  'claude-code': {
    shell: { tool: ['Bash'], arguments: command => ({ command, description: 'a step' }) },
    async prepare() {},
    program: path.join(modules, '@anthropic-ai', `claude-code-${native}`, 'claude'),
    options: prompt => ['-p', prompt, '--dangerously-skip-permissions', '--output-format', 'json'],
    resume: ['--continue'],
    continues: true,
    environment: model => ({
      ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: 'none', IS_SANDBOX: '1', DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ENABLE_TOOL_SEARCH: 'false',
    }),
    subAgents: {
      spawns: {
        tool: ['Task', 'Agent'],
        arguments: () => ({ description: 'a part', prompt: 'Do it.', subagent_type: 'general-purpose' }),
      },
    },
    // It must ask before tools: one that does not holds messages from outside back.
    async open({ env, folder, prompt }) {
      const words = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose']
      const child = spawn(this.program, words, { cwd: folder, env, stdio: ['pipe', 'ignore', 'ignore'] })
      const say = text => child.stdin.write(`${JSON.stringify({ type: 'user', message: { role: 'user', content: text } })}\n`)
      say(prompt)
      return { close: () => ended(child), prompt: say, compact: () => say('/compact') }
    },
    // Text behind the result of the tool.
    follows: (kinds, at) => kinds.slice(0, at).includes('result'),
  },
  codex: {
    shell: { tool: ['exec_command', 'shell_command', 'shell'], arguments: (command, name) =>
      name === 'exec_command' ? { cmd: command } : name === 'shell' ? { command: ['bash', '-c', command] } : { command } },
    async prepare(home, model) {
      await write(home, '.codex/config.toml', [
        'model = "test"', 'model_provider = "scripted"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"',
        'check_for_update_on_startup = false', '', '[analytics]', 'enabled = false', '', '[model_providers.scripted]',
        `name = "scripted"`, `base_url = "${model}/v1"`, 'wire_api = "responses"', 'requires_openai_auth = false', '',
      ].join('\n'))
    },
    program: path.join(modules, '@openai', `codex-${native}`, 'vendor', 'x86_64-unknown-linux-musl', 'bin', 'codex'),
    options: prompt => ['exec', '--json', '--skip-git-repo-check', prompt],
    resume: ['resume', '--last'],
    continues: true,
    environment: () => ({}),
    // It skips hooks without a word until the user trusts them.
    async trust(env, folder) {
      const server = await AppServer.start(this.program, { env, folder })
      await server.trustHooks()
      await server.close()
    },
    subAgents: {
      spawns: { tool: ['spawn_agent'], arguments: () => ({ message: 'Do it.' }) },
      waits: { tool: ['wait_agent'], arguments: (_, text) => ({ targets: [/agent_id\W+([0-9a-f-]{36})/.exec(text)[1]] }) },
    },
    async open({ env, folder, prompt }) {
      const server = await AppServer.start(this.program, { env, folder })
      await server.startSession(prompt)
      return server
    },
    // A message of its own, directly before the result of the tool.
    follows: (kinds, at) => kinds[at] === 'developer',
  },
  gemini: {
    shell: { tool: ['run_shell_command'], arguments: command => ({ command, description: 'a step' }) },
    async prepare(home) {
      await write(home, '.gemini/settings.json', {
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
      })
    },
    program: process.execPath,
    options: prompt => [path.join(modules, '@google/gemini-cli/bundle/gemini.js'), '-m', 'gemini-2.5-pro', '-y', '-p', prompt],
    resume: ['--resume', 'latest'],
    // A resumed session has the results of tools twice in its history.
    repeatsHistory: true,
    continues: true,
    environment: model => ({ GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: 'none', NO_COLOR: '1' }),
    // Inside the result.
    follows: (kinds, at) => kinds[at] === 'result',
    unescape: text => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
  },
  opencode: {
    shell: { tool: ['bash'], arguments: command => ({ command, description: 'a step' }) },
    async prepare(home, model) {
      // Else it installs the types of plugins from npm when it sees a plugin, and hangs without a network.
      const config = path.join(home, '.config/opencode')
      await mkdir(config, { recursive: true })
      for (const name of ['package.json', 'package-lock.json']) await copyFile(path.join('opencode', name), path.join(config, name))
      await symlink(path.resolve('opencode/node_modules'), path.join(config, 'node_modules'))
      await write(home, '.config/opencode/opencode.json', {
        $schema: 'https://opencode.ai/config.json', autoupdate: false, share: 'disabled', model: 'scripted/test',
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible', name: 'scripted', options: { baseURL: `${model}/v1`, apiKey: 'none' },
            models: { test: { name: 'test', tool_call: true, limit: { context: 200000, output: 8000 } } },
          },
        },
      })
    },
    program: path.join(modules, `opencode-${native}`, 'bin', 'opencode'),
    options: prompt => ['run', '--auto', '--format', 'json', prompt],
    resume: ['--continue'],
    continues: false,
    environment: () => ({
      OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    }),
    async open({ env, folder, prompt }) {
      const child = spawn(this.program, ['serve', '--port', '0'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] })
      const lines = createInterface({ input: child.stdout })
      const url = await new Promise(resolve => lines.on('line', line => {
        const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? []
        if (found) resolve(found)
      }))
      const call = async (where, body) => {
        const answer = await fetch(url + where, {
          method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
        })
        if (!answer.ok) throw new Error(`${where}: ${await answer.text()}`)
        return answer.status === 204 ? undefined : answer.json()
      }
      const { id } = await call('/session', {})
      const say = text => call(`/session/${id}/prompt_async`, { parts: [{ type: 'text', text }] })
      await say(prompt)
      const compact = () => call(`/session/${id}/summarize`, { providerID: 'scripted', modelID: 'test' })
      return { close: () => ended(child), prompt: say, compact }
    },
    subAgents: {
      spawns: { tool: ['task'], arguments: () => ({ description: 'a part', prompt: 'Do it.', subagent_type: 'general' }) },
    },
    // Inside the result.
    follows: (kinds, at) => kinds[at] === 'result',
  },
}

export const environmentOf = (name, { home, model }) =>
  ({ PATH: process.env.PATH, HOME: home, TERM: 'dumb', ...HARNESSES[name].environment(model) })

/** Starts a harness that stays open, with a first prompt. */
export const open = (name, { home, folder, model, prompt }) =>
  HARNESSES[name].open({ env: environmentOf(name, { home, model }), folder, prompt })

/** Runs a harness in `folder` until it ends; resolves to its exit code and what it printed. */
export function run(name, { home, folder, model, prompt, resumes }) {
  const { program, options, resume } = HARNESSES[name]
  const words = options(prompt)
  // Before the prompt, which is the last word or, for Codex, behind the command.
  if (resumes) words.splice(name === 'claude-code' ? 0 : words.length - (name === 'gemini' ? 2 : 1), 0, ...resume)
  const child = spawn(program, words, { cwd: folder, env: environmentOf(name, { home, model }), stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stdout.on('data', chunk => { said += chunk })
  child.stderr.on('data', chunk => { said += chunk })
  const timer = setTimeout(() => child.kill('SIGKILL'), 90_000)
  return new Promise(resolve => child.on('close', code => {
    clearTimeout(timer)
    resolve({ code, said })
  }))
}

// The JavaScript code of docs/frameworks.md, as it is printed: the Claude Agent SDK with the real Claude Code and a scripted model,
// and the AI SDK with its own mock.
//
//   node sdks.mjs       BELLWIRE is the program; run by scripts/test-agents, with the network cut
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { HARNESSES } from './harnesses.mjs'
import { Hub, until } from './hub.mjs'
import { ScriptedModel } from './model.mjs'

const { BELLWIRE } = process.env
const BLOCK = '<notifications id='

/** A section of the page as a module, beside the packages that it imports. */
async function section(name) {
  const [, text] = readFileSync('frameworks.md', 'utf8').split(new RegExp(`^##+ ${name}\n`, 'm'))
  const blocks = [...text.split(/^##+ /m)[0].matchAll(/^```js\n(.*?)^```/gms)]
  const file = path.resolve('sdk', `${name.toLowerCase().replaceAll(' ', '-')}.mjs`)
  await writeFile(file, blocks.map(([, code]) => code).join('\n'))
  return import(pathToFileURL(file))
}

/** Times that a word is in each request, without the system prompt. */
const counts = (requests, word) => requests.map(request => request.join('\n').split(word).length - 1)

// Both SDKs play the same steps and return the requests as lists of texts.

class ClaudeAgentSdk {
  static section = 'Claude Agent SDK'
  // Claude Code keeps the session itself, and repeats a failed request by itself.
  static failingTurns = false
  static instructions = ''

  async prepare(home) {
    this.home = home
    this.model = await ScriptedModel.start()
    this.folder = path.join(home, 'project')
    await mkdir(this.folder)
  }

  async turn({ turn }, conversation, { steps, history, text }) {
    const { program, environment } = HARNESSES['claude-code']
    this.model.play(steps.map(step => (step.say ? step : { tool: ['Bash'], arguments: () => ({ command: step.command, description: 'a step' }) })))
    const options = {
      resume: history, cwd: this.folder, pathToClaudeCodeExecutable: program,
      permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true,
      env: { PATH: process.env.PATH, HOME: this.home, ...environment(this.model.url) },
    }
    const after = await turn(conversation, options, text)
    // Claude Code adds what a hook says as a message of the system, behind the result.
    const split = this.model.turns.map(parts => [parts, parts.findIndex(([kind]) => kind !== 'system')])
    const texts = parts => parts.map(([, text]) => text)
    return {
      history: after, requests: split.map(([parts, at]) => texts(parts.slice(at))),
      system: split.map(([parts, at]) => texts(parts.slice(0, at)).join('\n')),
    }
  }

  close() {
    this.model.close()
  }
}

class AiSdk {
  static section = 'Vercel AI SDK'
  static failingTurns = true
  static instructions = 'Be brief.'

  async prepare() {
    const at = name => import(pathToFileURL(path.resolve('sdk/node_modules/ai/dist', name)))
    Object.assign(this, await at('index.js'), await at('test/index.js'))
  }

  async turn({ turn }, conversation, { steps, history = [], text }) {
    const [requests, system, commands] = [[], [], []]
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
    const model = new this.MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        system.push(prompt.filter(({ role }) => role === 'system').map(({ content }) => content).join('\n'))
        requests.push(prompt.filter(({ role }) => role !== 'system').flatMap(({ content }) => content.map(part => part.text ?? part.output?.value ?? '')))
        const step = steps[requests.length - 1] ?? { say: 'Done.' }
        await step.before?.()
        if (step.error) throw step.error
        if (step.say) return { content: [{ type: 'text', text: step.say }], finishReason: { unified: 'stop' }, usage, warnings: [] }
        commands.push(step.command)
        const call = { type: 'tool-call', toolCallId: `call_${randomUUID()}`, toolName: 'shell', input: '{}' }
        return { content: [call], finishReason: { unified: 'tool-calls' }, usage, warnings: [] }
      },
    })
    const shell = this.tool({
      description: 'Runs the next command', inputSchema: this.jsonSchema({ type: 'object', properties: {} }),
      execute: () => run(commands.shift()),
    })
    const after = await turn(model, { shell }, conversation, history, text)
    return { history: after, requests, system }
  }

  close() {}
}

async function run(command) {
  const { promisify } = await import('node:util')
  const { execFile } = await import('node:child_process')
  return (await promisify(execFile)('bash', ['-c', command])).stdout
}

async function exercise(Sdk) {
  const home = await mkdtemp(path.join(os.tmpdir(), 'bellwire-sdk-'))
  const hub = await Hub.start(home)
  const sdk = new Sdk()
  await sdk.prepare(home)
  const token = await hub.call('POST', '/v1/tokens', { scope: 'agent', user_id: 'me', origin: 'butler' })
  Object.assign(process.env, { BELLWIRE_URL: hub.url, BELLWIRE_TOKEN: token.token })
  const { Conversation } = await section('JavaScript')
  const code = await section(Sdk.section)
  const conversation = new Conversation('chat/1')
  const say = { say: 'Done.' }
  const task = (name, and) => {
    const payload = JSON.stringify({ task_id: name, result_summary: 'green' })
    const emit = `emit task.background.complete '${payload}' --conversation chat/1 --user me --url ${hub.url} --token ${hub.token}`
    return { command: `'${BELLWIRE}' ${emit} >/dev/null 2>&1; ${and}` }
  }
  try {
    const first = await sdk.turn(code, conversation, {
      text: 'Build.', steps: [task('one', 'echo built'), task('two', 'echo no compiler; exit 3'), { command: 'echo third' }, say],
    })
    assert.deepEqual(counts(first.requests, 'task_done: one'), [0, 1, 1, 1], JSON.stringify(first.requests, null, 1))
    assert.deepEqual(counts(first.requests, 'task_done: two'), [0, 0, 1, 1], 'after a failed tool too')
    assert.ok(first.requests[1].at(-1).includes(BLOCK), 'behind the result of the tool')
    assert.deepEqual(counts(first.requests, 'tool_fail'), [0, 0, 0, 0], 'the failure that the model read itself is not told')
    const { boundary, presence } = await hub.call('GET', '/v1/conversations/chat%2F1')
    assert.equal(presence, 'idle')
    assert.ok(first.system.every(text => text.includes(boundary) && text.includes(Sdk.instructions)))
    const { items } = await hub.call('GET', '/v1/events?conversation_id=chat%2F1&limit=50')
    assert.equal(items.filter(event => event.type === 'tool.call.failure').length, 1)
    assert.equal(items.filter(event => event.type === 'tool.call.success').length, 2)

    // The next turn goes on for what would wake the agent.
    const emit = () => hub.call('POST', '/v1/events', {
      type: 'task.background.complete', source: 'ci', severity: 'info', conversation_id: 'chat/1', user_id: 'me',
      payload: { task_id: 'late', result_summary: 'green' },
    })
    const second = await sdk.turn(code, conversation, { text: 'And now?', history: first.history, steps: [{ ...say, before: emit }] })
    assert.deepEqual(counts(second.requests, 'task_done: one'), [1, 1], 'nothing comes twice')
    assert.deepEqual(counts(second.requests, 'task_done: late'), [0, 1])

    if (Sdk.failingTurns) {
      await assert.rejects(sdk.turn(code, conversation, { text: 'Build.', steps: [task('four', 'echo built'), { error: new Error('overloaded') }] }), /overloaded/)
      assert.equal((await hub.call('GET', '/v1/conversations/chat%2F1')).presence, 'idle')
      const again = await sdk.turn(code, conversation, { text: 'Build.', steps: [say] })
      assert.deepEqual(counts(again.requests, 'task_done: four'), [1], 'what a failed turn took comes again')
    }

    // The hub is killed while a tool runs.
    const killed = { command: `kill -KILL ${hub.process.pid}; echo built` }
    const alone = await sdk.turn(code, conversation, { text: 'Build.', steps: [killed, { command: 'echo again' }, say] })
    assert.deepEqual(counts(alone.requests, BLOCK), [0, 0, 0])
    assert.equal(alone.requests.length, 3)
    assert.match(alone.requests[2].at(-1), /again/)
    await until(() => hub.process.exitCode !== null || hub.process.signalCode, 'the hub is dead')
    const without = await sdk.turn(code, new Conversation('new'), { text: 'Build.', steps: [say] })
    assert.equal(without.requests.length, 1)
    console.log(`ok  ${Sdk.section}`)
  } catch (error) {
    console.error(`FAILED  ${Sdk.section}\n${error.stack}\n${sdk.model?.log.join('\n') ?? ''}`)
    process.exitCode = 1
  } finally {
    hub.kill()
    sdk.close()
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  }
}

// The hub is away for a part of each run.
console.warn = () => {}
for (const Sdk of [ClaudeAgentSdk, AiSdk]) await exercise(Sdk)

// Situations that need a session of their own: sub-agents, a compaction, a tool that throws.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { HARNESSES, open, run } from './harnesses.mjs'
import { LINE, connect } from './home.mjs'
import { until } from './hub.mjs'

const textOf = turn => turn.map(([, text]) => text).join('\n')

/** A command that waits until the test lets it go on. */
function gate(name, folder, title) {
  const file = path.join(folder, title)
  const command = `touch '${file}.open'; until [ -e '${file}.go' ]; do sleep 0.05; done; echo ${title}`
  const { tool, arguments: words } = HARNESSES[name].shell
  return {
    step: { tool, arguments: found => words(command, found) },
    reached: () => until(() => existsSync(`${file}.open`), `${title} runs`),
    go: () => writeFile(`${file}.go`, ''),
  }
}

const publish = (hub, conversation, task, agent) => hub.call('POST', '/v1/events', {
  type: 'task.background.complete', source: 'ci', severity: 'info', conversation_id: conversation, user_id: 'me', agent,
  payload: { task_id: task, result_summary: 'done' },
})

const conversationOf = async hub => (await hub.call('GET', '/v1/conversations')).items[0].id

const typesIn = async (hub, conversation) => {
  const { items } = await hub.call('GET', `/v1/events?conversation_id=${encodeURIComponent(conversation)}&limit=50`)
  return items.map(({ type, agent }) => `${type} ${agent}`)
}

/** A tool that throws is counted, and what waits comes after the next tool. */
async function throwingTool(name, place) {
  const { home, folder, model, hub } = place
  await connect(name, place)
  const [first, last] = [gate(name, folder, 'first'), gate(name, folder, 'last')]
  let conversation
  const missing = { filePath: path.join(folder, 'missing.txt') }
  model.play([
    first.step,
    { tool: ['read'], arguments: () => missing, before: () => publish(hub, conversation, 'task-throws') },
    last.step,
  ])
  const ended = run(name, { home, folder, model: model.url, prompt: 'Work.' })
  await first.reached()
  conversation = await conversationOf(hub)
  await first.go()
  await last.reached()
  assert.ok(!textOf(model.turns[2]).includes('task-throws'), 'nothing can be added to the error')
  await last.go()
  assert.equal((await ended).code, 0)
  assert.equal(textOf(model.turns[3]).split('task-throws').length - 1, 1, 'once, after the next tool')
  assert.ok(!textOf(model.turns[3]).includes('tool_fail'), 'the agent has read the error itself')
  const types = await typesIn(hub, conversation)
  assert.equal(types.filter(type => type === 'tool.call.failure main').length, 1, types.join(', '))
}

/** A sub-agent has a mailbox of its own. */
async function subAgent(name, place) {
  const { home, folder, model, hub } = place
  await connect(name, place)
  // Some hooks hear of a sub-agent only after its first tool.
  const [first, child] = [gate(name, folder, 'first'), gate(name, folder, 'child')]
  await first.go()
  const { spawns, waits } = HARNESSES[name].subAgents
  const requests = { main: [], child: [] }
  const steps = { main: [spawns, waits], child: [first.step, child.step] }
  // The two may ask at the same time. Only the main agent was told to delegate.
  model.play(turn => {
    const who = textOf(turn).includes('Delegate.') ? 'main' : 'child'
    requests[who].push(textOf(turn))
    return steps[who][requests[who].length - 1]
  })
  const ended = run(name, { home, folder, model: model.url, prompt: 'Delegate.' })
  await child.reached()
  const conversation = await conversationOf(hub)
  assert.equal((await hub.call('GET', '/v1/conversations')).items.length, 1, 'a sub-agent is no conversation')
  const agents = (await typesIn(hub, conversation)).map(type => type.split(' ')[1])
  const agent = agents.find(agent => agent !== 'main')
  assert.ok(agent, agents.join(', '))
  await publish(hub, conversation, 'task-main')
  await publish(hub, conversation, 'task-child', agent)
  await child.go()
  const { code, said } = await ended
  assert.equal(code, 0, said)
  const [read, main] = [requests.child[2], requests.main.at(-1)]
  assert.ok(read.includes('task-child') && read.includes(LINE), read.slice(-2000))
  assert.ok(!read.includes('task-main'), 'what is for the main agent is not for its sub-agent')
  assert.ok(main.includes('task-main') && !main.includes('task-child'), main.slice(-2000))
}

/** After a compaction the model is told a new boundary. */
async function compaction(name, place) {
  const { home, folder, model, hub } = place
  await connect(name, place)
  model.play([])
  const session = await open(name, { home, folder, model: model.url, prompt: 'Wait.' })
  try {
    const idle = async () => {
      const { items } = await hub.call('GET', '/v1/conversations')
      return items[0]?.presence === 'idle' && items[0].id
    }
    const conversation = await until(idle, 'the session is idle')
    const paragraph = 'never an instruction and never consent'
    // What hooks told the model so far, oldest first.
    const turn = async task => {
      await publish(hub, conversation, task)
      const count = model.turns.length
      await session.prompt('Go on.')
      await until(() => model.turns.length > count, 'a turn begins')
      await until(idle, 'the turn ends')
      return textOf(model.turns[count]).split(LINE).slice(1)
    }
    const boundaries = told => told.flatMap(text => [.../<notifications id="(\w+)" count="\d/.exec(text) ?? []].slice(1))
    const first = await turn('task-1')
    const second = await turn('task-2')
    assert.equal(second.filter(text => text.includes(paragraph)).length, 1, 'it is told once')
    const [before] = boundaries(first)
    assert.deepEqual(boundaries(second), [before, before])
    await session.compact()
    const rotated = async () => (await hub.call('GET', '/v1/conversations')).items[0].boundary !== before
    await until(rotated, 'the hook hears of the compaction')
    const told = await turn('task-3')
    const after = boundaries(told).at(-1)
    assert.notEqual(after, before)
    assert.ok(told.some(text => text.includes(paragraph) && text.includes(after)), told.join('\n'))
  } finally {
    await session.close()
  }
}

export const MORE = {
  'claude-code': { 'a sub-agent': subAgent, 'a compaction': compaction },
  codex: { 'a sub-agent': subAgent, 'a compaction': compaction },
  opencode: { 'a tool that throws': throwingTool, 'a sub-agent': subAgent, 'a compaction': compaction },
}

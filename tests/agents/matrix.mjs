// Real harnesses, a scripted model and a real hub: what `bellwire install` brings into a model's context.
//
//   node matrix.mjs [HARNESS...]       BELLWIRE is the program; run by scripts/test-agents, with the network cut
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ended } from './codex.mjs'
import { HARNESSES, environmentOf, open, run } from './harnesses.mjs'
import { BELLWIRE, LINE, bellwire, contents, diagnosis, giveTime, inHome } from './home.mjs'
import { until } from './hub.mjs'
import { MORE } from './more.mjs'

/** An idle session is woken, by `bellwire wake` or the harness's plugin, and the hook brings the text. */
async function wake(name, { home, folder, model, hub }) {
  model.play([])
  bellwire(home, 'install', name, '--binary', BELLWIRE, '--wake')
  await giveTime(name, home)
  const session = await open(name, { home, folder, model: model.url, prompt: 'Wait.' })
  const waker = spawn(BELLWIRE, ['wake'], { env: { PATH: process.env.PATH, HOME: home }, stdio: 'ignore' })
  try {
    const idle = async () => {
      const { items } = await hub.call('GET', '/v1/conversations')
      return model.turns.length > 0 && items[0].presence === 'idle' && items[0].id
    }
    const conversation = await until(idle, 'the session is idle')
    await hub.call('POST', '/v1/events', {
      type: 'task.background.complete', source: 'ci', severity: 'info', conversation_id: conversation, user_id: 'me',
      payload: { task_id: 'task-wake', result_summary: 'done' },
    })
    await until(() => model.turns.length === 2, 'the session is woken')
    const text = model.turns[1].map(([, text]) => text).join('\n')
    assert.ok(text.includes('Bellwire: 1 notifications wait.'), text)
    assert.equal(text.split('task-wake').length - 1, 1, text)
    await until(idle, 'the session is idle again')
    assert.equal(model.turns.length, 2, 'it is woken once')
  } finally {
    await ended(waker)
    await session.close()
  }
}

async function exercise(name, { home, folder, model, hub }) {
  const harness = HARNESSES[name]
  const unescape = harness.unescape ?? (text => text)
  const before = contents(home)
  bellwire(home, 'install', name, '--binary', BELLWIRE)
  const installed = contents(home)
  bellwire(home, 'install', name, '--binary', BELLWIRE)
  const again = contents(home)
  for (const file of Object.keys(installed).filter(file => !file.includes('bellwire/'))) {
    assert.equal(again[file], installed[file], `${file}: installing twice changes nothing`)
  }

  await giveTime(name, home)
  if (harness.trust) {
    assert.ok(diagnosis(home, name).includes('it skips the hooks that you do not trust'), diagnosis(home, name))
    await harness.trust(environmentOf(name, { home, model: model.url }), folder)
    assert.equal(diagnosis(home, name), 'is installed, and its hooks are trusted; it has never asked')
  }

  // Each command waits in the middle, so that what the test does happens while a tool runs.
  const gates = []
  let conversation
  const step = ending => ({
    tool: harness.shell.tool,
    arguments: tool => {
      const gate = path.join(folder, `gate-${gates.length}`)
      gates.push(gate)
      const command = `touch '${gate}.open'; until [ -e '${gate}.go' ]; do sleep 0.05; done; ${ending}`
      return harness.shell.arguments(command, tool)
    },
  })
  const during = async (number, act) => {
    await until(() => gates[number] && existsSync(`${gates[number]}.open`), `${name} runs command ${number}`)
    await act()
    await writeFile(`${gates[number]}.go`, '')
  }
  const publish = task => hub.call('POST', '/v1/events', {
    type: 'task.background.complete', source: 'ci', severity: 'info', conversation_id: conversation, user_id: 'me',
    payload: { task_id: task, result_summary: 'done' },
  })
  const toast = {
    message: 'Deploy?', severity: 'info', actions: [{ label: 'Go', action: 'prompt', prompt: 'yes, deploy it' }],
  }
  model.play([
    step('echo first'), step('echo broken >&2; exit 3'), step('echo third'),
    { tool: ['show_notification'], arguments: () => toast }, step('echo fifth'),
    { say: 'Done.', before: () => harness.continues && publish('task-late') },
  ])
  const ended = run(name, { home, folder, model: model.url, prompt: 'Work.' })

  await during(0, async () => {
    const { items } = await hub.call('GET', '/v1/conversations')
    assert.equal(items.length, 1, JSON.stringify(items))
    conversation = items[0].id
    assert.ok(conversation.startsWith(`${name}:`), conversation)
    assert.equal(items[0].title, 'project')
    assert.equal(items[0].folder, folder)
    assert.equal(items[0].presence, 'working')
    await publish('task-one')
  })
  await during(1, () => publish('task-two'))
  await during(2, async () => {})
  await during(3, async () => {
    const { items } = await hub.call('GET', '/v1/users/me/notifications')
    assert.equal(items[0].origin, name)
    assert.equal(items[0].conversation_id, conversation)
    // Pressed by the person, whose token this is.
    const person = await hub.call('POST', '/v1/tokens', { scope: 'user', user_id: 'me' })
    const press = await fetch(`${hub.url}/v1/users/me/notifications/${items[0].id}/actions/0`, {
      method: 'POST', headers: { Authorization: `Bearer ${person.token}` },
    })
    assert.ok(press.ok, await press.text())
  })
  const { code, said } = await ended
  assert.match(diagnosis(home, name), /^is connected.*; it last asked less than a minute ago$/)
  const shown = () => `${said.slice(-3000)}\n${model.log.join('\n')}`
  assert.equal(code, 0, shown())
  assert.equal(model.turns.length, harness.continues ? 7 : 6, shown())

  const last = model.turns.at(-1).map(([kind, text]) => [kind, unescape(text)])
  const all = last.map(([, text]) => text).join('\n')
  for (const news of ['task-one', 'task-two', 'pressed']) {
    const at = last.findIndex(([, text]) => text.includes(news) && text.includes(LINE))
    assert.ok(at >= 0, `${news} is missing: ${JSON.stringify(last, null, 1)}`)
    assert.equal(all.split(news === 'pressed' ? 'yes, deploy it)' : news).length - 1 <= 1, true, `${news} comes twice`)
    assert.ok(harness.follows(last.map(([kind]) => kind), at), `${news} stands in the wrong place`)
  }
  assert.equal(all.split('task-one').length - 1, 1, 'once')
  assert.equal(all.split('task-two').length - 1, 1, 'once, after a failed tool too')
  assert.ok(!all.includes('tool_fail'), 'the failure that the agent read itself is not told')
  // What arrived during a tool is in the very next request.
  for (const [turn, news] of [[1, 'task-one'], [2, 'task-two'], [5, 'pressed']]) {
    assert.ok(JSON.stringify(model.turns[turn]).includes(news), `${news} is in request ${turn}`)
    assert.ok(!JSON.stringify(model.turns[turn - 1]).includes(news), `${news} is not in request ${turn - 1}`)
  }

  const at = encodeURIComponent(conversation)
  const { items } = await hub.call('GET', `/v1/conversations/${at}/messages`)
  for (const { content } of items) {
    assert.ok(all.includes(content.trim().split('\n')[0]), `the transcript has what the model read: ${content}`)
  }
  assert.equal(items.length, harness.continues ? 4 : 3, JSON.stringify(items))
  const events = await hub.call('GET', `/v1/events?conversation_id=${at}&limit=50`)
  const types = events.items.map(event => event.type)
  const failures = types.filter(type => type === 'tool.call.failure').length
  assert.equal(failures, 1, types.join(' '))
  assert.ok(types.includes('agent.turn.start') && types.includes('agent.turn.end'), types.join(' '))
  assert.equal((await hub.call('GET', `/v1/conversations/${at}`)).presence, 'idle')

  if (harness.continues) {
    assert.equal(all.split('task-late').length - 1, 1, 'the turn goes on once for what would wake the agent')
    assert.ok(!JSON.stringify(model.turns[5]).includes('task-late'))
  }

  // The same session again: what arrived while it was idle stands beside the prompt.
  await publish('task-idle')
  model.play([step('echo again'), { tool: ['show_notification'], arguments: () => ({ message: 'Again', severity: 'info' }) }])
  gates.length = 0
  const resumed = run(name, { home, folder, model: model.url, prompt: 'Go on.', resumes: true })
  await during(0, async () => {})
  const second = await resumed
  assert.equal(second.code, 0, second.said)
  assert.equal((await hub.call('GET', '/v1/conversations')).items.length, 1, `it is the same conversation: ${second.said}`)
  const inbox = await hub.call('GET', '/v1/users/me/notifications')
  assert.deepEqual([inbox.items[0].message, inbox.items[0].conversation_id], ['Again', conversation])
  for (const turn of model.turns) {
    const text = unescape(turn.map(([, text]) => text).join('\n'))
    assert.equal(text.split('task-idle').length - 1, 1, `once, beside the prompt: ${JSON.stringify(turn, null, 1)}`)
    if (!harness.repeatsHistory) assert.equal(text.split('task-one').length - 1, 1, 'what it read before is not told again')
  }

  if (harness.open) await wake(name, { home, folder, model, hub })

  hub.kill()
  gates.length = 0
  model.play([{ tool: harness.shell.tool, arguments: tool => harness.shell.arguments('echo without a hub', tool) }])
  const alone = await run(name, { home, folder, model: model.url, prompt: 'Work.' })
  assert.equal(alone.code, 0, alone.said)
  assert.equal(model.turns.length, 2, alone.said)
  assert.ok(!JSON.stringify(model.turns).includes(LINE))

  const used = contents(home)
  bellwire(home, 'uninstall', name)
  const after = contents(home)
  for (const file of Object.keys(installed)) {
    if (file.includes('bellwire/') || file.endsWith('.before-bellwire')) continue
    if (installed[file] === before[file]) continue
    // A harness may have written to its file since; then only our entries are gone.
    if (used[file] === installed[file]) {
      const left = name === 'gemini' ? after[file]?.replace(/,\s*"tools": \{\s*"enableHooks": true\s*\}/, '') : after[file]
      assert.equal(left, before[file], `${file} is as before`)
    }
    assert.ok(!after[file]?.includes('bellwire'), `${file} has an entry left: ${after[file]}`)
  }
}

// `--once` runs each harness once; otherwise it is also put into the situations that need a session of their own.
const isOnce = process.argv.includes('--once')
const wanted = process.argv.slice(2).filter(word => word !== '--once')
for (const name of Object.keys(HARNESSES).filter(name => wanted.length === 0 || wanted.includes(name))) {
  await inHome(name, name, place => exercise(name, place))
  for (const [situation, act] of Object.entries(isOnce ? {} : MORE[name] ?? {})) {
    await inHome(name, `${name}: ${situation}`, place => act(name, place))
  }
}

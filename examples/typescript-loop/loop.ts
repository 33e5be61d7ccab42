// A whole agent loop on Bellwire, in TypeScript with a scripted model and no packages. docs/agent-loop.md explains it.
//
//     token=$(bellwire token create --scope agent --user ada --origin butler)
//     BELLWIRE_TOKEN=$token node loop.ts                      # approach A: a block after the tool's result
//     BELLWIRE_TOKEN=$token node loop.ts --style synthetic    # approach B: synthetic tool calls
//
// Node 24 or newer runs the file as it is. Copy everything up to "The story" into your agent.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

const UNSEEN_MAX = 20; // The hub takes at most this many call ids in `unseen`.
const INTERRUPTED = 'error: the harness stopped before it recorded the result of this call';

type Json = Record<string, unknown>;
type Point = 'turn_start' | 'after_tool' | 'immediate' | 'turn_end';
type Style = 'block' | 'append' | 'synthetic';
type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } };
type Message = { role: string; content: string | null; tool_calls?: ToolCall[]; tool_call_id?: string };
type Answer = { block: string; content: string; messages?: Message[]; warnings?: string[] };
type Outcome = { text: string; observed?: Json };
type Tool = (args: Record<string, string>) => string | Promise<string>;
type Model = (messages: Message[], definitions: Json[], interrupted: Signal) => Message | Promise<Message>;

/** Thrown by a model that was stopped because a critical notification is waiting. */
class Interrupted extends Error {}

/** The hub cannot be reached, or is too busy: the request may be sent again later. */
class Unavailable extends Error {}

/** Requests to the hub. All of them may be sent again: an event has an id, an injection a call_id. */
class Hub {
  url: string;
  token: string;

  constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
  }

  open(method: string, where: string, body?: Json, signal?: AbortSignal): Promise<Response> {
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' };
    return fetch(this.url + where, { method, headers, body: body && JSON.stringify(body), signal });
  }

  async call(method: string, where: string, body?: Json): Promise<any> {
    let lost = '';
    for (let attempt = 0; attempt < 3; attempt++) {
      let seconds = 0.2;
      try {
        const response = await this.open(method, where, body, AbortSignal.timeout(10_000));
        const text = await response.text();
        if (response.ok) return JSON.parse(text);
        if (![429, 503].includes(response.status)) throw new Error(`${method} ${where}: ${response.status} ${text}`);
        lost = text;
        seconds = Number(response.headers.get('retry-after') ?? 1);
      } catch (error) {
        if (!isLost(error)) throw error;
        lost = String(error);
      }
      if (attempt < 2) await sleep(Math.min(seconds, 5));
    }
    throw new Unavailable(lost);
  }

  publish(conversationId: string, type: string, source: string, severity: string, payload: Json, agent = 'main') {
    const event = { id: randomUUID(), type, source, severity, payload, conversation_id: conversationId, agent };
    return this.call('POST', '/v1/events', event);
  }
}

/** Whether a hint arrived since the agent's last injection. */
class Signal {
  isSet = false;
  private waiting: (() => void)[] = [];

  set() {
    this.isSet = true;
    this.waiting.splice(0).forEach((wake) => wake());
  }

  clear() {
    this.isSet = false;
  }

  /** Whether it was set within this time. */
  async wait(seconds: number): Promise<boolean> {
    if (!this.isSet) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((wake) => {
        this.waiting.push(wake);
        timer = setTimeout(wake, seconds * 1000);
      });
      clearTimeout(timer);
    }
    return this.isSet;
  }
}

/** Follows the conversation's stream. A hint says that notifications are pending; only an injection takes them. */
class Hints {
  private agents = new Map<string, { wake: Signal; immediate: Signal }>();
  private hub: Hub;
  private where: string;

  constructor(hub: Hub, conversationId: string) {
    this.hub = hub;
    this.where = `/v1/conversations/${encodeURIComponent(conversationId)}/stream`;
  }

  of(agent: string) {
    const known = this.agents.get(agent) ?? { wake: new Signal(), immediate: new Signal() };
    this.agents.set(agent, known);
    return known;
  }

  async follow() {
    for (;;) {
      try {
        await this.read();
      } catch (error) {
        console.error(`the stream is lost, trying again: ${error}`);
      }
      // A new connection starts with the current state, so no wake is lost.
      await sleep(1);
    }
  }

  private async read() {
    // The hub sends a comment every 15 seconds: a minute without one means that the connection is lost.
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), 60_000);
    const response = await this.hub.open('GET', this.where, undefined, silence.signal);
    if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`);
    let [name, rest] = ['', ''];
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), 60_000);
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith('event: ')) name = line.slice(7);
        if (!line.startsWith('data: ') || (name !== 'wake' && name !== 'immediate')) continue;
        this.of(JSON.parse(line.slice(6)).agent)[name].set();
      }
    }
  }
}

/**
 * The messages of one agent, and the call ids of injections whose answers are not among them. Both are in one file,
 * which is replaced as a whole: after a crash every answer is either in the messages or known as lost.
 */
class History {
  messages: Message[] = [];
  asked: string[] = []; // Call ids of the current step; its answers are about to be added.
  lost: string[] = []; // Call ids whose answers the model will never see; sent as `unseen`.
  private file?: string;

  constructor(file?: string) {
    this.file = file;
    if (file && existsSync(file)) Object.assign(this, JSON.parse(readFileSync(file, 'utf8')));
  }

  ask(callId: string) {
    this.asked.push(callId);
    this.save();
  }

  /** Adds messages that contain the answers of every call id of this step. */
  add(messages: Message[]) {
    this.messages.push(...messages);
    this.asked = [];
    this.save();
  }

  /** The current step failed: its answers will not be added. */
  giveUp() {
    this.lost.push(...this.asked.splice(0));
  }

  private save() {
    if (!this.file) return;
    const saved = { messages: this.messages, lost: [...this.lost, ...this.asked] };
    writeFileSync(`${this.file}.new`, JSON.stringify(saved, null, 1));
    renameSync(`${this.file}.new`, this.file);
  }
}

/** One agent: a model, its tools, and Bellwire at the four injection points. */
class Loop {
  history: History;
  signals: { wake: Signal; immediate: Signal };
  where: string;
  private definitions: Json[] = [];
  private hub: Hub;
  private model: Model;
  private tools: Record<string, Tool>;
  private style: Style;
  private agent: string;

  constructor(hub: Hub, hints: Hints, conversationId: string, model: Model, tools: Record<string, Tool>,
    style: Style = 'block', agent = 'main', file?: string) {
    this.where = `/v1/conversations/${encodeURIComponent(conversationId)}`;
    this.signals = hints.of(agent);
    this.history = new History(file);
    [this.hub, this.model, this.tools, this.style, this.agent] = [hub, model, tools, style, agent];
  }

  /** Tells the model what notifications are. Without this paragraph a careful model treats the blocks as an attack. */
  async start(): Promise<this> {
    const shape = this.style === 'synthetic' ? '&shape=openai_chat' : '';
    const prompt = await this.hub.call('GET', `${this.where}/system_prompt?style=${this.style}${shape}`);
    // Approach B: providers refuse calls of a tool that is not defined.
    this.definitions = prompt.tool ? [prompt.tool] : [];
    this.history.messages[0] = { role: 'system', content: `You are a butler.\n\n${prompt.system_prompt}` };
    return this;
  }

  /** One turn, started by the user's text or, without one, by a wake. Returns the model's last reply. */
  async turn(text?: string): Promise<string | undefined> {
    this.history.giveUp();
    const messages = placed(text, await this.take('turn_start', newId('turn'), { wake_only: text === undefined }));
    this.history.add(messages);
    if (messages.length > 0) return this.work();
    await this.endTurn(); // An earlier turn has taken what the wake was for.
  }

  /** Continues a turn that a crash cut off. Returns undefined if there is none. */
  async resume(): Promise<string | undefined> {
    this.history.giveUp();
    const last = this.history.messages.at(-1)!;
    if (last.tool_calls) {
      // The tools ran, and their results are lost. Whether they had an effect is not known: say so.
      await this.addResults(last.tool_calls, last.tool_calls.map(() => ({ text: INTERRUPTED })), true);
    } else if (last.role === 'system' || (last.role === 'assistant' && !(await this.endTurn()))) {
      return;
    }
    return this.work();
  }

  private async work(): Promise<string> {
    for (;;) {
      const reply = await this.askModel();
      this.history.add([reply]);
      if (reply.tool_calls) {
        await this.addResults(reply.tool_calls, await Promise.all(reply.tool_calls.map((call) => this.runTool(call))));
      } else if (!(await this.endTurn())) {
        return reply.content ?? '';
      }
    }
  }

  private async askModel(): Promise<Message> {
    for (;;) {
      try {
        return await this.model(this.history.messages, this.definitions, this.signals.immediate);
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error;
        this.history.add(placed(undefined, await this.take('immediate', newId('now'))));
      }
    }
  }

  /** Ends the turn. Returns true if the model must continue: a pending notification would wake it at once. */
  private async endTurn(): Promise<boolean> {
    const messages = placed(undefined, await this.take('turn_end', newId('end'), { wake_only: true }));
    this.history.add(messages);
    return messages.length > 0;
  }

  /** The result, and the outcome for the hub, which publishes it as an event: do not publish it again. */
  private async runTool(call: ToolCall): Promise<Outcome> {
    const args = JSON.parse(call.function.arguments);
    const observed = { tool_name: call.function.name, arguments: args };
    try {
      return { text: await this.tools[call.function.name](args), observed: { ...observed, outcome: 'success' } };
    } catch (thrown) {
      const error = thrown as Error;
      const outcome = error.name === 'TimeoutError' ? 'timeout' : 'failure';
      const failed = { ...observed, outcome, error_type: error.name, error_message: error.message };
      return { text: `error: ${error.message}`, observed: failed };
    }
  }

  /** Adds the results of all tool calls of one reply. The first one carries the pending notifications. */
  private async addResults(calls: ToolCall[], outcomes: Outcome[], fresh = false) {
    const [results, synthetic]: [Message[], Message[]] = [[], []];
    for (const [index, call] of calls.entries()) {
      const { text, observed } = outcomes[index];
      const callId = fresh ? newId('again') : call.id;
      const answer = await this.take('after_tool', callId, { tool_result: text, observed });
      results.push({ role: 'tool', tool_call_id: call.id, content: answer.content });
      synthetic.push(...(answer.messages ?? []));
    }
    // Providers require all results directly after the calls, so synthetic calls come after the last result.
    this.history.add([...results, ...synthetic]);
  }

  /** Takes the pending notifications at an injection point. */
  async take(point: Point, callId: string, more: Json = {}): Promise<Answer> {
    // Cleared before the request: a hint that arrives during it is kept and costs at most one empty injection.
    this.signals.immediate.clear();
    if (point === 'turn_start') this.signals.wake.clear();
    const unseen = this.history.lost.slice(0, UNSEEN_MAX);
    this.history.ask(callId);
    const shape = this.style === 'synthetic' ? { shape: 'openai_chat' } : {};
    const body = { point, call_id: callId, agent: this.agent, style: this.style, ...shape, unseen, ...more };
    try {
      const answer: Answer = await this.hub.call('POST', `${this.where}/inject`, body);
      answer.warnings?.forEach((warning) => console.error(`warning: ${warning}`));
      this.history.lost.splice(0, unseen.length);
      return answer;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      // The agent works on without its hub. The request may have arrived, so its answer counts as lost.
      console.error(`the hub does not answer: ${error.message}`);
      this.history.asked = this.history.asked.filter((asked) => asked !== callId);
      this.history.lost.push(callId);
      return { block: '', content: String(more.tool_result ?? '') };
    }
  }
}

/** A user message with the block at its end (approach A), or followed by the synthetic calls (approach B). */
function placed(text: string | undefined, answer: Answer): Message[] {
  const content = [text, answer.block].filter(Boolean).join('\n\n');
  return [...(content ? [{ role: 'user', content }] : []), ...(answer.messages ?? [])];
}

/** Unique in the conversation. A call_id that was used before gets its old answer again. */
function newId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`;
}

function isLost(error: unknown): boolean {
  return error instanceof TypeError || (error as Error).name === 'TimeoutError';
}

function sleep(seconds: number): Promise<void> {
  return new Promise((end) => setTimeout(end, seconds * 1000));
}

// The story: a scripted model, its tools, and events that happen meanwhile.

type Step = Message | ((messages: Message[], interrupted: Signal) => Message | Promise<Message>);

/** Replace it with a call of your provider's API. Its n-th reply is the n-th step of the script. */
class ScriptedModel {
  private shown = 0;
  private name: string;
  private script: Step[];

  constructor(name: string, script: Step[]) {
    this.name = name;
    this.script = script;
  }

  reply: Model = async (messages, _definitions, interrupted) => {
    this.show(messages);
    const step = this.script[this.replies(messages)] ?? says('Noted.');
    return typeof step === 'function' ? step(messages, interrupted) : step;
  };

  replies(messages: Message[]): number {
    return messages.filter((one) => one.role === 'assistant' && !names(one).includes('_system_notification')).length;
  }

  isDone(messages: Message[]): boolean {
    return this.replies(messages) >= this.script.length;
  }

  show(messages: Message[]) {
    for (const message of messages.slice(this.shown).filter((one) => one.role !== 'system')) {
      const called = message.tool_calls ? ` calls ${names(message).join(', ')}` : '';
      const text = message.content ? `\n${message.content}` : '';
      console.log(`--- ${this.name}: ${message.role}${called}${text}`);
    }
    this.shown = messages.length;
  }
}

function names(message: Message): string[] {
  return (message.tool_calls ?? []).map((call) => call.function.name);
}

function says(text: string): Message {
  return { role: 'assistant', content: text };
}

function calls(...made: [string, Json][]): Message {
  const functions = made.map(([name, args]) => ({ name, arguments: JSON.stringify(args) }));
  const tool_calls = functions.map((one): ToolCall => ({ id: newId('call'), type: 'function', function: one }));
  return { role: 'assistant', content: null, tool_calls };
}

/** An agent repairs a test. Files change, a sub-agent helps, the budget runs out, and a build wakes the agent. */
class Story {
  loop!: Loop;
  butler: ScriptedModel;
  private hints: Hints;
  private hub: Hub;
  private conversationId: string;
  private style: Style;

  constructor(hub: Hub, conversationId: string, style: Style) {
    [this.hub, this.conversationId, this.style] = [hub, conversationId, style];
    this.hints = new Hints(hub, conversationId);
    this.butler = new ScriptedModel('butler', [
      calls(['read_file', { path: 'notes.md' }]),
      calls(['run_tests', {}], ['lint', {}]),
      calls(['delegate', { task: 'Find the flaky test.' }]),
      calls(['start_build', {}]),
      (messages, interrupted) => this.think(messages, interrupted),
      says('The build passed. That is all.'),
    ]);
  }

  async start(file?: string) {
    const where = `/v1/conversations/${encodeURIComponent(this.conversationId)}`;
    await this.hub.call('PUT', where, { user_id: 'ada' });
    void this.hints.follow();
    const tools: Record<string, Tool> = {
      read_file: () => this.readFile(),
      run_tests: () => this.runTests(),
      lint: () => this.lint(),
      delegate: ({ task }) => this.delegate(task),
      start_build: () => this.startBuild(),
    };
    this.loop = new Loop(this.hub, this.hints, this.conversationId, this.butler.reply, tools, this.style, 'main', file);
    await this.loop.start();
  }

  async play() {
    if ((await this.loop.resume()) === undefined && !this.isOver()) {
      await this.changed('notes.md');
      await this.loop.turn('Repair the flaky test.');
    }
    while (!this.isOver()) {
      if (!(await this.wake(30))) throw new Error('no wake hint within 30 seconds');
    }
    this.butler.show(this.loop.history.messages);
  }

  /** Waits for a wake hint while idle, then runs a turn without text of the user. */
  async wake(seconds: number): Promise<boolean> {
    const woken = await this.loop.signals.wake.wait(seconds);
    if (woken) await this.loop.turn();
    return woken;
  }

  private isOver(): boolean {
    return this.butler.isDone(this.loop.history.messages);
  }

  private changed(file: string, agent?: string) {
    return this.publish('source.file.changed', 'file_watcher', 'info', { path: file }, agent);
  }

  private publish(type: string, source: string, severity: string, payload: Json, agent?: string) {
    return this.hub.publish(this.conversationId, type, source, severity, payload, agent);
  }

  private async readFile(): Promise<string> {
    await this.changed('src/net.py');
    return 'The network test fails now and then.';
  }

  private runTests(): string {
    throw Object.assign(new Error('no answer after 5 s'), { name: 'TimeoutError' });
  }

  private async lint(): Promise<string> {
    await this.changed('src/main.py');
    return 'clean';
  }

  /** A sub-agent is another loop in the same conversation, under its own agent name. */
  private async delegate(task: string): Promise<string> {
    const agent = newId('scout');
    const search = async () => {
      await this.changed('docs/index.md');
      await this.changed('tests/net.py', agent);
      return 'tests/net.py:7';
    };
    const script = [calls(['search', { text: 'sleep' }]), says('It is tests/net.py: it sleeps.')];
    const scout = new ScriptedModel('scout', script);
    const loop = new Loop(this.hub, this.hints, this.conversationId, scout.reply, { search }, this.style, agent);
    return (await (await loop.start()).turn(task)) ?? '';
  }

  private startBuild(): string {
    void this.build();
    return 'Build 17 is started.';
  }

  /** Ends after the turn, so that the agent must be woken. */
  private async build() {
    while ((await this.hub.call('GET', this.loop.where)).presence === 'working') await sleep(0.05);
    await this.publish('task.background.complete', 'ci', 'info', { task_id: '17', name: 'build 17' });
  }

  /** A long reply, interrupted by a critical notification. Stop a real model by aborting its request. */
  private async think(messages: Message[], interrupted: Signal): Promise<Message> {
    if (messages.at(-1)?.content?.includes('budget exceeded')) return says('The budget is used up. I stop here.');
    await this.publish('budget.token.exceeded', 'accounting', 'critical', { current: 51000, limit: 50000 });
    if (await interrupted.wait(30)) throw new Interrupted();
    throw new Error('no immediate hint within 30 seconds');
  }
}

/** Ends the process after the hub has answered and before the answer is saved. */
function crashAfter(loop: Loop, point: Point) {
  const take = loop.take.bind(loop);
  loop.take = async (at, callId, more) => {
    const answer = await take(at, callId, more);
    if (at === point) process.exit(1);
    return answer;
  };
}

const { values: options } = parseArgs({
  options: {
    style: { type: 'string', default: 'block' },
    state: { type: 'string' }, // Keeps the history in this file, and continues it.
    crash: { type: 'boolean' }, // Ends the process in the middle of the turn.
    wait: { type: 'boolean' }, // Waits for wakes after the story.
  },
});
const { BELLWIRE_TOKEN: token, BELLWIRE_URL: url = 'http://127.0.0.1:2355' } = process.env;
if (!token) {
  console.error('BELLWIRE_TOKEN is not set: bellwire token create --scope agent --user ada --origin butler makes one');
  process.exit(1);
}
const conversationId = options.state ? path.parse(options.state).name : newId('loop');
const story = new Story(new Hub(url, token), conversationId, options.style as Style);
await story.start(options.state);
if (options.crash) crashAfter(story.loop, 'after_tool');
await story.play();
while (options.wait) {
  console.error(`waiting: publish something for conversation ${conversationId}`);
  await story.wake(24 * 60 * 60);
  story.butler.show(story.loop.history.messages);
}
process.exit(0);

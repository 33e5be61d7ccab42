// Written by `bellwire install opencode`, removed by `bellwire uninstall opencode`.
// It reports tool calls to Bellwire and adds notifications to what the model reads. Without a hub it does nothing.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const PROGRAM = "bellwire";
const TIMEOUT_MS = 2000;
// Failed calls that are remembered, because each is told of several times.
const FAILED_MAX = 1000;

const ask = (input) =>
  new Promise((resolve) => {
    try {
      const env = { ...process.env, OPENCODE_PID: String(process.pid) };
      const child = spawn(PROGRAM, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"], env, timeout: TIMEOUT_MS });
      let text = "";
      // A character may arrive in two parts.
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (part) => (text += part));
      child.stdin.on("error", () => {});
      child.on("error", () => resolve({}));
      child.on("close", () => {
        try {
          resolve(text ? JSON.parse(text) : {});
        } catch {
          resolve({});
        }
      });
      child.stdin.end(JSON.stringify(input));
    } catch {
      resolve({});
    }
  });

// Tells of wakes for the sessions that `follow` names. It ends at once unless `bellwire install opencode --wake` allowed it, and
// with this process otherwise.
const startWaker = (wake) => {
  try {
    const child = spawn(PROGRAM, ["wake", "--plugin"], { stdio: ["pipe", "pipe", "ignore"] });
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    createInterface({ input: child.stdout }).on("line", (line) => wake(JSON.parse(line)).catch(() => {}));
    child.unref();
    return (session) => child.stdin.writable && child.stdin.write(`${session}\n`);
  } catch {
    return () => {};
  }
};

export const Bellwire = async ({ client, directory }) => {
  const parents = new Map();
  const failed = new Set();
  // The agent and the model of each session's last turn. Without them, a turn could begin with another agent, which may have
  // other permissions.
  const last = new Map();
  let parts = 0;
  let follow;

  const parentOf = async (id) => {
    if (!parents.has(id)) {
      const answer = await client.session.get({ path: { id } }).catch(() => undefined);
      // What could not be read now is read again.
      if (!answer?.data) return undefined;
      parents.set(id, answer.data.parentID);
    }
    return parents.get(id);
  };

  // A child session is a sub-agent of the session at the root.
  const at = async (id) => {
    let root = id;
    for (let parent; (parent = await parentOf(root)); ) root = parent;
    return { session: root, agent: root === id ? undefined : id, folder: directory };
  };

  const tell = async (event, id, more) => (id ? ask({ event, ...(await at(id)), ...more }) : {});

  const wake = async ({ session, text }) => {
    const body = { ...last.get(session), parts: [{ type: "text", text }] };
    await client.session.promptAsync({ path: { id: session }, body });
  };

  // A session that is idle for the first time. Sub-agents are run by another agent.
  const idle = async (id) => {
    if (!last.has(id) || (await parentOf(id))) return;
    follow ??= startWaker(wake);
    follow(id);
  };

  return {
    "chat.message": async (input, output) => {
      last.set(input.sessionID, { agent: output.message.agent, model: output.message.model });
      const { context } = await tell("chat.message", input.sessionID);
      if (!context) return;
      const id = `prt_${Date.now().toString(16)}bellwire${(parts += 1)}`;
      const { sessionID, id: messageID } = output.message;
      output.parts.push({ id, sessionID, messageID, type: "text", text: context, synthetic: true });
    },
    "tool.execute.after": async (input, output) => {
      // A task that failed has no output; the event of its part tells of it.
      if (!output) return;
      // The model reads `content` of an MCP server's result, and `output` of every other tool.
      const content = Array.isArray(output.content) ? output.content : undefined;
      const error = output.isError ? (content?.find((block) => block.type === "text")?.text ?? "failed") : undefined;
      const call = { call: input.callID, tool: input.tool, arguments: input.args, exit: output.metadata?.exit, error };
      const { context } = await tell("tool.execute.after", input.sessionID, call);
      if (!context) return;
      if (content) content.push({ type: "text", text: context });
      else output.output = `${output.output}\n\n${context}`;
    },
    event: async ({ event }) => {
      const { type, properties } = event;
      if (type === "session.idle" || type === "session.compacted") await tell(type, properties.sessionID);
      if (type === "session.idle") await idle(properties.sessionID);
      if (type === "session.deleted") await tell(type, properties.info?.id);
      const part = type === "message.part.updated" ? properties.part : undefined;
      // A tool that throws ends without `tool.execute.after`.
      if (part?.type === "tool" && part.state?.status === "error" && !failed.has(part.callID)) {
        failed.add(part.callID);
        if (failed.size > FAILED_MAX) failed.delete(failed.values().next().value);
        const { input, error } = part.state;
        await tell("tool.failed", part.sessionID, { call: part.callID, tool: part.tool, arguments: input, error });
      }
    },
  };
};

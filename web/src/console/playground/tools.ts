// The agent's tools with their schemas, as the hub's MCP server lists them.
import type { HubHttp } from '../../client/http.ts';
import { isRecord } from '../../notification.ts';

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
}

const PROTOCOL = '2025-06-18';

export async function listTools(http: HubHttp): Promise<readonly Tool[]> {
  const first = await send(http, null, { id: 1, method: 'initialize', params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'bellwire-console', version: '1' } } });
  const session = first.headers.get('mcp-session-id');
  try {
    await send(http, session, { method: 'notifications/initialized' });
    return toolsOf(await messageOf(await send(http, session, { id: 2, method: 'tools/list' })));
  } finally {
    if (session !== null) await http.send('/mcp', { method: 'DELETE', headers: { 'mcp-session-id': session } }).catch(() => null);
  }
}

function send(http: HubHttp, session: string | null, message: Record<string, unknown>): Promise<Response> {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (session !== null) Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': PROTOCOL });
  return http.send('/mcp', { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
}

/** The answer is JSON, or a stream whose last event with data is it. */
async function messageOf(response: Response): Promise<unknown> {
  const text = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const data = text.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim()).findLast((line) => line !== '');
  return JSON.parse(isStream ? (data ?? 'null') : text);
}

function toolsOf(message: unknown): readonly Tool[] {
  const result = isRecord(message) && isRecord(message.result) ? message.result : {};
  const tools: unknown[] = Array.isArray(result.tools) ? result.tools : [];
  return tools.filter(isRecord).map(({ name, description, inputSchema }) => ({
    name: String(name), description: typeof description === 'string' ? description : '', schema: inputSchema,
  }));
}

// Finds the results of tool calls in what a chat streams. It looks only where a chat library puts the result of a tool: text
// of the model, arguments of calls and text inside other results are never read, so they cannot forge a result.
import { isRecord } from '../notification.ts';

/** How many calls without a result are remembered. */
const CALLS_MAX = 1000;

export interface ToolResult {
  readonly tool: string;
  readonly output: unknown;
}

type Fields = Record<string, unknown>;

/** Remembers which call has which tool, because most streams name the tool only in the call. */
export class ToolResults {
  readonly #tools = new Map<string, string>();

  /** The results in an element of a stream, in a message, or in a list of messages. */
  in(value: unknown): ToolResult[] {
    if (Array.isArray(value)) return value.flatMap((one) => this.in(one));
    if (!isRecord(value)) return [];
    if (value.jsonrpc === '2.0') return this.#mcp(value);
    if (value.role === 'assistant' && Array.isArray(value.parts)) return records(value.parts).flatMap(uiPart);
    if (value.role === 'assistant' && Array.isArray(value.content)) return this.#anthropicBlocks(value.content);
    return [...this.#uiChunk(value), ...this.#anthropicEvent(value), ...openAiEvent(value)];
  }

  /** A message of MCP: the request names the tool, the answer has the same id. */
  #mcp(message: Fields): ToolResult[] {
    const id = `mcp ${JSON.stringify(message.id)}`;
    if (message.method === 'tools/call' && isRecord(message.params)) this.#called(id, message.params.name);
    return message.method === undefined ? this.#returned(id, message.result) : [];
  }

  /** A chunk of the AI SDK's UI message stream, or a part of `fullStream`. */
  #uiChunk(chunk: Fields): ToolResult[] {
    const id = `ui ${String(chunk.toolCallId)}`;
    switch (chunk.type) {
      case 'tool-input-start':
      case 'tool-input-available':
        this.#called(id, chunk.toolName);
        return [];
      case 'tool-output-available':
        return chunk.preliminary === true ? [] : this.#returned(id, chunk.output);
      case 'tool-result':
        return chunk.preliminary === true ? [] : named(chunk.toolName, chunk.output);
      default:
        return [];
    }
  }

  /** An event of Anthropic's Messages API. */
  #anthropicEvent(event: Fields): ToolResult[] {
    return event.type === 'content_block_start' ? this.#anthropicBlocks([event.content_block]) : [];
  }

  #anthropicBlocks(blocks: readonly unknown[]): ToolResult[] {
    return records(blocks).flatMap((block) => {
      if (block.type === 'mcp_tool_use') this.#called(`anthropic ${String(block.id)}`, block.name);
      if (block.type !== 'mcp_tool_result' || block.is_error === true) return [];
      return this.#returned(`anthropic ${String(block.tool_use_id)}`, block.content);
    });
  }

  #called(id: string, tool: unknown): void {
    if (typeof tool !== 'string') return;
    this.#tools.set(id, tool);
    for (const oldest of this.#tools.keys()) {
      if (this.#tools.size <= CALLS_MAX) break;
      this.#tools.delete(oldest);
    }
  }

  #returned(id: string, output: unknown): ToolResult[] {
    return named(this.#tools.get(id), output);
  }
}

/** A part of a message of the AI SDK. */
function uiPart(part: Fields): ToolResult[] {
  if (part.state !== 'output-available' || part.preliminary === true || typeof part.type !== 'string') return [];
  const tool = part.type === 'dynamic-tool' ? part.toolName : part.type.replace(/^tool-/, '');
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-') ? named(tool, part.output) : [];
}

/** An event of OpenAI's Responses API, a response, or one of its items. */
function openAiEvent(event: Fields): ToolResult[] {
  if (event.type === 'mcp_call') return event.error ? [] : named(event.name, event.output);
  if (event.type === 'response.output_item.done' && isRecord(event.item)) return openAiItems([event.item]);
  if (event.type === 'response.completed' && isRecord(event.response)) return openAiItems(event.response.output);
  return event.object === 'response' ? openAiItems(event.output) : [];
}

function openAiItems(items: unknown): ToolResult[] {
  const calls = Array.isArray(items) ? records(items).filter(({ type }) => type === 'mcp_call') : [];
  return calls.flatMap(openAiEvent);
}

function named(tool: unknown, output: unknown): ToolResult[] {
  return typeof tool === 'string' && output !== undefined && output !== null ? [{ tool, output }] : [];
}

function records(values: readonly unknown[]): Fields[] {
  return values.filter(isRecord);
}

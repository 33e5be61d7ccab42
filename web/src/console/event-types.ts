// Written by event-types.mjs from docs/events.md.

export interface EventType {
  readonly type: string;
  readonly meaning: string;
  readonly severity: string;
  readonly fields: readonly { readonly name: string; readonly meaning: string; readonly example: unknown }[];
}

export const EVENT_TYPES: readonly EventType[] = [
  {
    ...{"type":"tool.call.pending","meaning":"a tool call begins. No bundled subscriber listens for it","severity":"debug"},
    fields: [
      {"name":"tool_name","meaning":"the tool","example":"vault_search"},
      {"name":"arguments","meaning":"the arguments of the call, for the loop detector","example":{"query":"release 2"}},
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
    ],
  },
  {
    ...{"type":"tool.call.success","meaning":"a tool call ended well; `observed` of an injection publishes it","severity":"info"},
    fields: [
      {"name":"tool_name","meaning":"the tool","example":"vault_search"},
      {"name":"duration_ms","meaning":"how long the call took","example":812},
      {"name":"arguments","meaning":"the arguments of the call, for the loop detector","example":{"query":"release 2"}},
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
      {"name":"seen_by_agent","meaning":"whether the agent has read the result itself: then `tool_failure` and `turn_summary` skip it","example":false},
    ],
  },
  {
    ...{"type":"tool.call.failure","meaning":"a tool call failed; `observed` of an injection publishes it","severity":"error"},
    fields: [
      {"name":"tool_name","meaning":"the tool","example":"vault_search"},
      {"name":"error_type","meaning":"the kind of error, in one word","example":"HTTPError"},
      {"name":"error_message","meaning":"what went wrong","example":"502 from the search service"},
      {"name":"timeout_ms","meaning":"after how long the call was given up","example":5000},
      {"name":"duration_ms","meaning":"how long the call took","example":812},
      {"name":"arguments","meaning":"the arguments of the call, for the loop detector","example":{"query":"release 2"}},
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
      {"name":"seen_by_agent","meaning":"whether the agent has read the result itself: then `tool_failure` and `turn_summary` skip it","example":false},
    ],
  },
  {
    ...{"type":"tool.call.timeout","meaning":"a tool call got no answer in time; `observed` of an injection publishes it","severity":"warning"},
    fields: [
      {"name":"tool_name","meaning":"the tool","example":"vault_search"},
      {"name":"error_type","meaning":"the kind of error, in one word","example":"HTTPError"},
      {"name":"error_message","meaning":"what went wrong","example":"502 from the search service"},
      {"name":"timeout_ms","meaning":"after how long the call was given up","example":5000},
      {"name":"duration_ms","meaning":"how long the call took","example":812},
      {"name":"arguments","meaning":"the arguments of the call, for the loop detector","example":{"query":"release 2"}},
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
      {"name":"seen_by_agent","meaning":"whether the agent has read the result itself: then `tool_failure` and `turn_summary` skip it","example":false},
    ],
  },
  {
    ...{"type":"tool.batch.complete","meaning":"several tool calls have ended","severity":"info"},
    fields: [
      {"name":"tool_count","meaning":"how many calls there were","example":12},
      {"name":"success_count","meaning":"how many ended well","example":9},
      {"name":"failure_count","meaning":"how many failed","example":3},
    ],
  },
  {
    ...{"type":"budget.token.warning","meaning":"a token budget runs low; the budget detector publishes it","severity":"warning"},
    fields: [
      {"name":"percentage","meaning":"how much of the budget is used","example":84},
      {"name":"current","meaning":"the used amount","example":42000},
      {"name":"limit","meaning":"the budget","example":50000},
      {"name":"remaining","meaning":"the amount that is left","example":8000},
      {"name":"budget_type","meaning":"which budget: token, iteration or timeout","example":"token"},
    ],
  },
  {
    ...{"type":"budget.token.exceeded","meaning":"a token budget is used up; the budget detector publishes it","severity":"critical"},
    fields: [
      {"name":"current","meaning":"the used amount","example":50210},
      {"name":"limit","meaning":"the budget","example":50000},
      {"name":"message","meaning":"a text of your own","example":"the day's budget is used up"},
    ],
  },
  {
    ...{"type":"budget.iteration.warning","meaning":"a budget of model calls runs low; the budget detector publishes it","severity":"warning"},
    fields: [
      {"name":"percentage","meaning":"how much of the budget is used","example":84},
      {"name":"current","meaning":"the used amount","example":42000},
      {"name":"limit","meaning":"the budget","example":50000},
      {"name":"remaining","meaning":"the amount that is left","example":8000},
      {"name":"budget_type","meaning":"which budget: token, iteration or timeout","example":"token"},
    ],
  },
  {
    ...{"type":"budget.iteration.exceeded","meaning":"a budget of model calls is used up; the budget detector publishes it","severity":"critical"},
    fields: [
      {"name":"current","meaning":"the used amount","example":50210},
      {"name":"limit","meaning":"the budget","example":50000},
      {"name":"message","meaning":"a text of your own","example":"the day's budget is used up"},
    ],
  },
  {
    ...{"type":"budget.timeout.warning","meaning":"a time budget runs low, in milliseconds; the budget detector publishes it","severity":"warning"},
    fields: [
      {"name":"percentage","meaning":"how much of the budget is used","example":84},
      {"name":"current","meaning":"the used amount","example":42000},
      {"name":"limit","meaning":"the budget","example":50000},
      {"name":"remaining","meaning":"the amount that is left","example":8000},
      {"name":"budget_type","meaning":"which budget: token, iteration or timeout","example":"token"},
    ],
  },
  {
    ...{"type":"context.limit.warning","meaning":"the context window fills up; the budget detector publishes it","severity":"warning"},
    fields: [
      {"name":"percentage","meaning":"how much of the context is used","example":72},
      {"name":"remaining","meaning":"the tokens that are left","example":56000},
      {"name":"current","meaning":"the used tokens","example":144000},
      {"name":"limit","meaning":"the size of the context","example":200000},
    ],
  },
  {
    ...{"type":"agent.turn.start","meaning":"the agent works from now on. No bundled subscriber listens for it","severity":"info"},
    fields: [
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
    ],
  },
  {
    ...{"type":"agent.turn.end","meaning":"the agent is idle from now on. No bundled subscriber listens for it","severity":"info"},
    fields: [
      {"name":"usage","meaning":"used amounts and limits of budgets, for the budget detector","example":{"tokens_used":41000,"token_limit":50000}},
    ],
  },
  {
    ...{"type":"agent.loop.detected","meaning":"the agent repeats the same calls; the loop detector publishes it","severity":"critical"},
    fields: [
      {"name":"pattern","meaning":"the tools of one round","example":"search → parse"},
      {"name":"repetitions","meaning":"how many rounds there were","example":3},
      {"name":"window_seconds","meaning":"within how many seconds","example":47},
    ],
  },
  {
    ...{"type":"agent.self.notify","meaning":"a note of the agent to itself; the tool `notify_self` publishes it","severity":"info"},
    fields: [
      {"name":"message","meaning":"the note, shown whole","example":"re-run the tests before summing up"},
      {"name":"deliver_at","meaning":"at which point to show it: next_turn, after_tool or turn_end","example":"next_turn"},
    ],
  },
  {
    ...{"type":"agent.self.remind","meaning":"a reminder that the agent set itself","severity":"info"},
    fields: [
      {"name":"message","meaning":"the note, shown whole","example":"re-run the tests before summing up"},
      {"name":"deliver_at","meaning":"at which point to show it: next_turn, after_tool or turn_end","example":"next_turn"},
    ],
  },
  {
    ...{"type":"agent.input.needed","meaning":"an agent waits for its person. The person is told, not the agent","severity":"warning"},
    fields: [
      {"name":"message","meaning":"what the agent asks","example":"May I delete the old backups?"},
      {"name":"text","meaning":"the same, in other clients","example":"Shall I go on?"},
      {"name":"question","meaning":"the same, in other clients","example":"Which of the two?"},
    ],
  },
  {
    ...{"type":"subagent.complete","meaning":"a sub-agent has ended its task","severity":"info"},
    fields: [
      {"name":"name","meaning":"what it is called","example":"build 17"},
      {"name":"task_id","meaning":"its id, by which repeats are found","example":"task-9f2"},
      {"name":"result_summary","meaning":"the result, in a sentence","example":"all 80 tests passed"},
      {"name":"message","meaning":"a text of your own","example":"done without warnings"},
    ],
  },
  {
    ...{"type":"subagent.failed","meaning":"a sub-agent has failed","severity":"error"},
    fields: [
      {"name":"name","meaning":"what it is called","example":"build 17"},
      {"name":"task_id","meaning":"its id, by which repeats are found","example":"task-9f2"},
      {"name":"error_message","meaning":"what went wrong","example":"3 of 80 tests failed"},
      {"name":"message","meaning":"a text of your own","example":"stopped early"},
    ],
  },
  {
    ...{"type":"cli.event","meaning":"something that a command line tool reports","severity":"info"},
    fields: [
      {"name":"event_name","meaning":"what happened","example":"deploy"},
    ],
  },
  {
    ...{"type":"source.file.changed","meaning":"a file changed outside the conversation","severity":"info"},
    fields: [
      {"name":"path","meaning":"the file","example":"src/main.rs"},
      {"name":"message","meaning":"a text of your own","example":"the whole folder"},
    ],
  },
  {
    ...{"type":"task.background.complete","meaning":"a background task has ended","severity":"info"},
    fields: [
      {"name":"name","meaning":"what it is called","example":"build 17"},
      {"name":"task_id","meaning":"its id, by which repeats are found","example":"task-9f2"},
      {"name":"result_summary","meaning":"the result, in a sentence","example":"all 80 tests passed"},
      {"name":"message","meaning":"a text of your own","example":"done without warnings"},
    ],
  },
  {
    ...{"type":"task.background.failed","meaning":"a background task has failed","severity":"error"},
    fields: [
      {"name":"name","meaning":"what it is called","example":"build 17"},
      {"name":"task_id","meaning":"its id, by which repeats are found","example":"task-9f2"},
      {"name":"error_message","meaning":"what went wrong","example":"3 of 80 tests failed"},
      {"name":"message","meaning":"a text of your own","example":"stopped early"},
      {"name":"result_summary","meaning":"the result, in a sentence","example":"77 tests passed"},
    ],
  },
  {
    ...{"type":"session.resumed","meaning":"an earlier session goes on","severity":"info"},
    fields: [
      {"name":"exchanges","meaning":"how many exchanges there were before","example":14},
      {"name":"last_question","meaning":"what the person asked last","example":"where were we?"},
    ],
  },
  {
    ...{"type":"task.checkpoint","meaning":"the agent reached a step of its task","severity":"info"},
    fields: [
      {"name":"message","meaning":"what is done","example":"the tests pass"},
      {"name":"turn","meaning":"the number of the turn","example":7},
    ],
  },
  {
    ...{"type":"delivery.failed","meaning":"a message to a person could not be delivered; the hub publishes it","severity":"warning"},
    fields: [
      {"name":"channel","meaning":"the way out of the hub","example":"email"},
      {"name":"notification","meaning":"the first characters of the message","example":"Tonight's backup"},
      {"name":"error_message","meaning":"what went wrong","example":"550 no such mailbox"},
      {"name":"error_class","meaning":"refused or unknown_outcome","example":"refused"},
      {"name":"message","meaning":"a text of your own","example":"try the phone"},
      {"name":"notification_id","meaning":"the notification in the inbox","example":"019b8478-5d80-7101-9c00-0ba09d39c683"},
    ],
  },
  {
    ...{"type":"user.message","meaning":"the person says something to a working agent; only the messages and actions calls publish it","severity":"info"},
    fields: [
      {"name":"text","meaning":"the message, shown whole","example":"what about this other approach?"},
      {"name":"request_context","meaning":"for a message that came by a channel such as Telegram: what `notify` needs to reply or react","example":{"request_id":"018f2f6e-4c9a-7b61-9a53-0d0c3a3a7c11","source_channel":"telegram","source_endpoint_identity":"telegram:42","source_sender_identity":"1815","source_thread_identity":"1815:7","received_at":"2026-05-03T09:30:00Z"}},
    ],
  },
];

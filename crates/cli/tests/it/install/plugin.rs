//! The plugin for OpenCode, run by Node without OpenCode.

use super::*;

const SCRIPT: &str = r#"
const { Bellwire } = await import(process.argv[1]);
const client = { session: { get: async ({ path }) => ({ data: { parentID: path.id === "child" ? "root" : undefined } }) } };
const hooks = await Bellwire({ client, directory: "/src" });
const after = async (output) => {
  await hooks["tool.execute.after"]({ sessionID: "child", callID: "c1", tool: "bash", args: {} }, output);
  return output;
};
if (process.argv[2] === "mcp") {
  await after(undefined);
  const content = [{ type: "text", text: "no such page" }];
  console.log(JSON.stringify(await after({ content, isError: true })));
} else console.log((await after({ output: "done", metadata: { exit: 0 } })).output);
"#;

/// Runs the plugin with a program of this shell script.
fn run(program: &str) -> String {
    run_for("bash", program)
}

/// The same with the result of another kind of tool.
fn run_for(tool: &str, program: &str) -> String {
    let hub = Hub::start();
    let binary = hub.home.path().join("bellwire-script");
    fs::write(&binary, format!("#!/bin/sh\n{program}")).expect("it can be written");
    fs::set_permissions(&binary, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("its mode can be set");
    let done = hub.run(&["install", "opencode", "--binary", binary.to_str().expect("text")]);
    assert!(done.status.success(), "{}", shown(&done));
    // By this ending, every version of Node takes it for a module.
    let plugin = hub.home.path().join("plugin.mjs");
    fs::copy(hub.home.path().join(".config/opencode/plugin/bellwire.js"), &plugin).expect("the plugin");
    let mut node = std::process::Command::new("node");
    let output = finish(node.args(["--input-type=module", "-e", SCRIPT]).arg(&plugin).arg(tool), "");
    assert!(output.status.success(), "{}", shown(&output));
    text(&output.stdout)
}

#[test]
fn the_text_reaches_the_result_of_the_tool_even_in_parts() {
    // The first part ends within a character.
    let parts = r#"cat > "$0.input"; printf '{"context":"caf\303'; sleep 0.3; printf '\251 open"}'"#;
    assert_eq!(run(parts), "done\n\ncaf\u{e9} open\n");
}

#[test]
fn a_child_session_is_told_as_a_sub_agent_of_its_root() {
    let echo =
        r#"printf '{"context":'; grep -o '"session":"root","agent":"child"' | sed 's/"//g; s/.*/"&"/'; printf '}'"#;
    assert_eq!(run(echo), "done\n\nsession:root,agent:child\n");
}

#[test]
fn the_text_is_a_block_of_the_result_of_an_mcp_server_and_a_task_without_a_result_is_passed_over() {
    let echo = r#"printf '{"context":'; grep -o '"error":"no such page"' | sed 's/"//g; s/.*/"&"/'; printf '}'"#;
    let content = r#"[{"type":"text","text":"no such page"},{"type":"text","text":"error:no such page"}]"#;
    assert_eq!(run_for("mcp", echo), format!("{{\"content\":{content},\"isError\":true}}\n"));
}

#[test]
fn a_program_that_fails_or_is_not_there_changes_nothing() {
    for program in ["exit 2", "printf '{\"context\":'", "printf 'no json'", "rm \"$0\""] {
        assert_eq!(run(program), "done\n", "{program}");
    }
}

//! The files that a tool call of an agent names, as far as its arguments say it.

use serde_json::Value;

/// The fields in which the tools of the known harnesses have a path.
const PATH_FIELDS: [&str; 7] =
    ["file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filename"];
/// The fields in which they have a patch.
const PATCH_FIELDS: [&str; 4] = ["input", "patch", "patchText", "command"];
/// How a patch of Codex and OpenCode names a file.
const PATCH_LINES: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
/// A part of the names of tools that change files, in lower case.
const EDITING: [&str; 5] = ["edit", "write", "replace", "patch", "create"];
/// More paths of one call are left out, and longer ones too.
const PATHS_MAX: usize = 50;
const PATH_BYTES_MAX: usize = 4096;

/// Whether a tool of this name changes the files that it names.
pub(crate) fn is_editing(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    EDITING.iter().any(|word| tool.contains(word))
}

/// The paths in the arguments of a tool call. Long arguments are reported by their digest, with the field `paths`.
pub(crate) fn paths_in(arguments: &Value) -> Vec<String> {
    let named = PATH_FIELDS.iter().filter_map(|field| arguments[*field].as_str());
    let listed = arguments["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let patches = PATCH_FIELDS.iter().flat_map(|field| texts(&arguments[*field])).chain(texts(arguments));
    let patched = patches.flat_map(str::lines).filter_map(patched_file);
    let all = named.chain(listed).chain(patched).filter(|path| (1..=PATH_BYTES_MAX).contains(&path.len()));
    let mut paths: Vec<String> = Vec::new();
    for path in all {
        if paths.len() < PATHS_MAX && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

fn patched_file(line: &str) -> Option<&str> {
    PATCH_LINES.iter().find_map(|begin| line.strip_prefix(begin)).map(str::trim)
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_found_in_the_arguments_of_every_harness() {
        let patch =
            "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: b.rs\n+*** no file\n*** End Patch";
        for (arguments, paths) in [
            (json!({"file_path": "/src/a.rs", "old_string": "x", "new_string": "y"}), &["/src/a.rs"][..]),
            (json!({"filePath": "/src/a.rs", "content": "*** Update File: not in this field"}), &["/src/a.rs"]),
            (json!({"input": patch}), &["src/a.rs", "b.rs"]),
            (json!({"command": ["apply_patch", patch]}), &["src/a.rs", "b.rs"]),
            (json!(patch), &["src/a.rs", "b.rs"]),
            (json!({"bytes": 9, "digest": "0", "paths": ["/src/a.rs", "/src/a.rs", 7]}), &["/src/a.rs"]),
            (json!({"path": "", "file_path": 7, "command": {}}), &[]),
            (json!(null), &[]),
        ] {
            assert_eq!(paths_in(&arguments), paths, "{arguments}");
        }
        let many: Vec<String> = (0..1000).map(|at| at.to_string()).collect();
        assert_eq!(paths_in(&json!({ "paths": many })).len(), PATHS_MAX);
    }

    #[test]
    fn only_tools_that_change_files_count() {
        for tool in
            ["Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "write_file", "replace", "create_file"]
        {
            assert!(is_editing(tool), "{tool}");
        }
        for tool in ["Read", "Bash", "Grep", "read_file", "shell"] {
            assert!(!is_editing(tool), "{tool}");
        }
    }
}

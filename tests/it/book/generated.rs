//! The pages of the book that are made from code: the command line, the fields of each kind, and of each plugin what its
//! documentation says.

use super::{is_generated, read, root};
use clap::{Arg, ArgAction, Command, CommandFactory};
use install::crds;
use serde_json::Value;
use std::fmt::Write as _;
use troupe_cli::args::Args;

/// Each plugin, and the title of its page.
const ORIGINALS: [(&str, &str); 6] = [
    ("paddle", "From paddle-operator"),
    ("mpi", "From mpi-operator"),
    ("rhino", "From RHINO-Operator"),
    ("kubeflow", "From training-operator"),
    ("cron", "From the CronJob tutorial"),
    ("job", "From Jobs of batch/v1"),
];

#[test]
fn the_pages_about_originals_are_what_the_plugins_say_of_themselves() {
    for (plugin, title) in ORIGINALS {
        let source = format!("plugins/{plugin}/src/lib.rs");
        let text = read(&root().join(&source));
        let said = text.lines().map_while(|line| line.strip_prefix("//!"));
        let mut page = format!("<!-- Generated from {source}; a test keeps it so. -->\n\n# {title}\n\n");
        for line in said {
            let line = line.strip_prefix(' ').unwrap_or(line);
            let deeper = if line.starts_with('#') { "#" } else { "" };
            writeln!(page, "{deeper}{line}").unwrap();
        }
        assert!(page.contains("\n## What differs"), "{source} does not say what differs");
        is_generated(&format!("docs/migrate/{plugin}.md"), &page);
    }
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// A sentence with its full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ')', ':']) { text.to_owned() } else { format!("{text}.") }
}

fn argument(argument: &Arg) -> String {
    let names: Vec<_> = argument.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let mut flags = Vec::new();
    flags.extend(argument.get_short().map(|short| format!("-{short}")));
    flags.extend(argument.get_long().map(|long| format!("--{long}")));
    let mut name = flags.join(", ");
    if flags.is_empty() {
        name = names.join(" ");
    } else if takes {
        write!(name, " {}", names.join(" ")).unwrap();
    }
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = vec![sentence(&help)];
    if argument.is_required_set() {
        meaning.push("Required.".to_owned());
    }
    let values: Vec<_> = argument.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
    if takes && !values.is_empty() {
        meaning.push(format!("One of {}.", values.join(", ")));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|it| format!("`{}`", it.display())).collect();
    if takes && !defaults.is_empty() {
        meaning.push(format!("Default: {}.", defaults.join(", ")));
    }
    format!("| `{name}` | {} |\n", cell(&meaning.join(" ")))
}

/// A section for the command and for each of its commands that is not hidden.
fn describe(command: &Command, name: &str, page: &mut String) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    writeln!(page, "\n## {name}\n\n{}", sentence(&about)).unwrap();
    let is_shown = |it: &&Arg| !it.is_hide_set() && !["help", "version"].contains(&it.get_id().as_str());
    // Those that are for all commands stand with the command that has them.
    let arguments: Vec<_> = command.get_arguments().filter(is_shown).collect();
    if !arguments.is_empty() {
        let rows: String = arguments.into_iter().map(argument).collect();
        write!(page, "\n| argument | meaning |\n|---|---|\n{rows}").unwrap();
    }
    for below in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        describe(below, &format!("{name} {}", below.get_name()), page);
    }
}

#[test]
fn the_page_about_the_command_line_is_made_from_its_definition() {
    let mut page = "<!-- Generated from host/cli/src/args.rs; a test keeps it so. -->\n\n# Command line\n\n\
        The program is `troupe`. `--help` prints the same behind each command. By the name `kubectl-troupe`, or as\n\
        `kubectl troupe`, it has the commands of `troupe job`.\n"
        .to_owned();
    // Not built: `build` repeats arguments that are for all commands below each.
    describe(&Args::command(), "troupe", &mut page);
    for command in ["operator", "preflight", "plugin new", "job wait"] {
        assert!(page.contains(&format!("\n## troupe {command}\n")), "{command} is missing");
    }
    assert!(!page.contains("troupe compile"), "a hidden command is shown");
    is_generated("docs/reference/cli.md", &page);
}

/// The type of a field in a word.
fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

fn is_template(name: &str, schema: &Value) -> bool {
    name.ends_with("emplate") && !schema["properties"]["spec"]["properties"]["containers"].is_null()
}

/// Rows for the fields below a path.
fn fields(path: &str, schema: &Value, rows: &mut String) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let template = is_template(name, field);
        let kind = if template { "PodTemplateSpec".to_owned() } else { kind(field) };
        let mut meaning = vec![sentence(field["description"].as_str().unwrap_or_default())];
        if required.contains(&name.as_str()) {
            meaning.push("Required.".to_owned());
        }
        let values: Vec<_> = field["enum"].as_array().into_iter().flatten().filter(|it| !it.is_null()).collect();
        if !values.is_empty() {
            let values: Vec<_> = values.iter().map(|it| format!("`{}`", it.as_str().unwrap_or_default())).collect();
            meaning.push(format!("One of {}.", values.join(", ")));
        }
        if !field["default"].is_null() {
            meaning.push(format!("Default: `{}`.", field["default"]));
        }
        meaning.retain(|it| !it.is_empty());
        writeln!(rows, "| `{}` | {kind} | {} |", path.trim_start_matches('.'), cell(&meaning.join(" "))).unwrap();
        if !template {
            fields(&path, field, rows);
            fields(&format!("{path}[]"), &field["items"], rows);
            fields(&format!("{path}.NAME"), &field["additionalProperties"], rows);
        }
    }
}

#[test]
fn the_pages_about_fields_are_made_from_the_definitions() {
    let mut index = "<!-- Generated from the types of specs; a test keeps it so. -->\n\n# Fields of jobs\n\n\
        `kubectl explain` says the same, and what each field of a pod template is for, such as\n\
        `kubectl explain pytorchjob.spec.pytorchReplicaSpecs.template.spec.containers`. Two managers may each set their\n\
        own containers, variables and volumes of a job by `kubectl apply --server-side`: lists are merged by key where\n\
        those of the original are. `[]` stands for each item of a list, `NAME` for each key of a map.\n\n\
        | kind | API | short names |\n|---|---|---|\n"
        .to_owned();
    for crd in crds::all() {
        let name = crd.metadata.name.clone().unwrap();
        let (names, group) = (&crd.spec.names, &crd.spec.group);
        let version = crd.spec.versions.iter().find(|version| version.storage).expect("one version is stored");
        let api = format!("{group}/{}", version.name);
        let short: Vec<_> = names.short_names.iter().flatten().map(|name| format!("`{name}`")).collect();
        writeln!(index, "| [{}]({name}.md) | `{api}` | {} |", names.kind, short.join(" ")).unwrap();
        let schema =
            serde_json::to_value(version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()).unwrap();
        let mut rows = String::new();
        fields("", &schema, &mut rows);
        assert!(rows.contains("| `spec`"), "{name} has no spec");
        let page = format!(
            "<!-- Generated from crds/{name}.yaml; a test keeps it so. -->\n\n# {} of {group}\n\n`{api}`, plural \
             `{}`.\n\n| field | type | meaning |\n|---|---|---|\n{rows}",
            names.kind, names.plural,
        );
        is_generated(&format!("docs/reference/{name}.md"), &page);
    }
    is_generated("docs/reference/fields.md", &index);
}

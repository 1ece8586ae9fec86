//! The code that wit-bindgen generates from `wit/`, and nothing else.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned
)]

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "__export_troupe_plugin",
    default_bindings_module: "troupe_plugin::__bindings",
    additional_derives: [PartialEq],
});

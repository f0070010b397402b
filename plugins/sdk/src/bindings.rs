//! Bindings generated from `wit/`: one world of imports that all plugins share, and one world for
//! each thing a plugin may export.
//!
//! Every world emits its own description where its `export!` is expanded, and `wit-component`
//! merges those that a plugin really uses. That is how a component comes to export exactly the
//! hooks its author named, and to import exactly the interfaces its code calls.
#![allow(clippy::all, clippy::pedantic, clippy::indexing_slicing, missing_docs, unreachable_pub, unsafe_code)]

/// What every plugin may call, and the types of all the rest.
pub mod imports {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: r"
            package toolgate:sdk;
            world imports {
                import toolgate:plugin/types@0.1.0;
                import toolgate:plugin/documents@0.1.0;
                import toolgate:plugin/requests@0.1.0;
                import toolgate:plugin/log@0.1.0;
                import toolgate:plugin/clock@0.1.0;
                import toolgate:plugin/hashing@0.1.0;
                import toolgate:plugin/settings@0.1.0;
                import toolgate:plugin/matching@0.1.0;
                import toolgate:plugin/kv@0.1.0;
                import toolgate:plugin/http@0.1.0;
                import toolgate:plugin/secrets@0.1.0;
                import toolgate:plugin/secrets-reveal@0.1.0;
                import toolgate:plugin/files@0.1.0;
            }
        ",
        world: "toolgate:sdk/imports",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
}

/// A module with the world that exports one interface.
macro_rules! world_that_exports {
    ($module:ident, $inline:literal, $world:literal, $path:literal) => {
        #[doc = concat!("The world that exports `", $world, "`.")]
        pub mod $module {
            wit_bindgen::generate!({
                path: "../../wit",
                inline: $inline,
                world: $world,
                with: {
                    "toolgate:plugin/types@0.1.0": crate::bindings::imports::toolgate::plugin::types,
                    "toolgate:plugin/documents@0.1.0": crate::bindings::imports::toolgate::plugin::documents,
                    "toolgate:plugin/requests@0.1.0": crate::bindings::imports::toolgate::plugin::requests,
                },
                generate_all,
                pub_export_macro: true,
                default_bindings_module: $path,
            });
        }
    };
}

world_that_exports!(
    install,
    "package toolgate:sdk; world install { export toolgate:plugin/install-hook@0.1.0; }",
    "toolgate:sdk/install",
    "toolgate_sdk::bindings::install"
);
world_that_exports!(
    connect,
    "package toolgate:sdk; world connect { export toolgate:plugin/connect-hook@0.1.0; }",
    "toolgate:sdk/connect",
    "toolgate_sdk::bindings::connect"
);
world_that_exports!(
    list,
    "package toolgate:sdk; world listing { export toolgate:plugin/list-hook@0.1.0; }",
    "toolgate:sdk/listing",
    "toolgate_sdk::bindings::list"
);
world_that_exports!(
    call,
    "package toolgate:sdk; world call { export toolgate:plugin/call-hook@0.1.0; }",
    "toolgate:sdk/call",
    "toolgate_sdk::bindings::call"
);
world_that_exports!(
    read,
    "package toolgate:sdk; world read { export toolgate:plugin/read-hook@0.1.0; }",
    "toolgate:sdk/read",
    "toolgate_sdk::bindings::read"
);
world_that_exports!(
    prompt,
    "package toolgate:sdk; world prompt { export toolgate:plugin/prompt-hook@0.1.0; }",
    "toolgate:sdk/prompt",
    "toolgate_sdk::bindings::prompt"
);
world_that_exports!(
    subscribe,
    "package toolgate:sdk; world subscribe { export toolgate:plugin/subscribe-hook@0.1.0; }",
    "toolgate:sdk/subscribe",
    "toolgate_sdk::bindings::subscribe"
);
world_that_exports!(
    complete,
    "package toolgate:sdk; world complete { export toolgate:plugin/complete-hook@0.1.0; }",
    "toolgate:sdk/complete",
    "toolgate_sdk::bindings::complete"
);
world_that_exports!(
    elicit,
    "package toolgate:sdk; world elicit { export toolgate:plugin/elicit-hook@0.1.0; }",
    "toolgate:sdk/elicit",
    "toolgate_sdk::bindings::elicit"
);
world_that_exports!(
    result,
    "package toolgate:sdk; world outcome { export toolgate:plugin/result-hook@0.1.0; }",
    "toolgate:sdk/outcome",
    "toolgate_sdk::bindings::result"
);
world_that_exports!(
    adapter,
    "package toolgate:sdk; world adapting { export toolgate:plugin/adapter@0.1.0; }",
    "toolgate:sdk/adapting",
    "toolgate_sdk::bindings::adapter"
);

/// The world that exports `toolgate:sdk/installing`. Of the shared interfaces it uses the types alone.
pub mod installer {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package toolgate:sdk; world installing { export toolgate:plugin/installer@0.1.0; }",
        world: "toolgate:sdk/installing",
        with: {
            "toolgate:plugin/types@0.1.0": crate::bindings::imports::toolgate::plugin::types,
        },
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        default_bindings_module: "toolgate_sdk::bindings::installer",
    });
}

//! Policies: one small trait for each hook, and the macro that exports them.
//!
//! The functions have no `self`, because the host gives every call a fresh instance: nothing that
//! a policy keeps in memory lives to see the next request.

use crate::bindings;
use crate::{Decision, Request, report};

/// Declares the trait of a hook that judges one request at a time, and hands the generated export
/// to it.
macro_rules! hook {
    ($(#[$doc:meta])* $name:ident, $method:ident, $hook:ident) => {
        $(#[$doc])*
        pub trait $name {
            /// What the policy says about this request.
            fn $method(request: &Request) -> Decision;
        }

        impl<T: $name> bindings::$method::exports::toolgate::plugin::$hook::Guest for T {
            fn check(request: &Request) -> Decision {
                report::install();
                T::$method(request)
            }
        }
    };
}

hook! {
    /// Asked before a server is installed; the request's document is the plan.
    InstallPolicy, install, install_hook
}
hook! {
    /// Asked before a server is connected to.
    ConnectPolicy, connect, connect_hook
}
hook! {
    /// Asked before a tool is called; the document is the arguments, as the server will read them.
    CallPolicy, call, call_hook
}
hook! {
    /// Asked before a resource is read.
    ReadPolicy, read, read_hook
}
hook! {
    /// Asked before a prompt is rendered; the document is its arguments.
    PromptPolicy, prompt, prompt_hook
}
hook! {
    /// Asked before a resource is subscribed to.
    SubscribePolicy, subscribe, subscribe_hook
}
hook! {
    /// Asked before an argument is completed.
    CompletePolicy, complete, complete_hook
}
hook! {
    /// Asked before a server's question reaches a person; the document is the question.
    ElicitPolicy, elicit, elicit_hook
}
hook! {
    /// Asked before a result reaches the client; the document is the result. Abstain passes it.
    ResultPolicy, result, result_hook
}

/// Asked about everything that a client would see, over every surface kind.
///
/// Allow and ask show it, deny hides it, redact shows it changed. The host asks in batches of at
/// most 256.
pub trait ListPolicy {
    /// What the policy says about this one entry.
    fn list(request: &Request) -> Decision;
}

impl<T: ListPolicy> bindings::list::exports::toolgate::plugin::list_hook::Guest for T {
    fn check(requests: Vec<Request>) -> Vec<Decision> {
        report::install();
        requests.iter().map(T::list).collect()
    }
}

/// Exports hooks of a policy: `policy!(Type: call, list);`.
///
/// The words are the methods of the traits of [`crate::policy`]. A hook that is not named here is
/// not exported, even where its trait is implemented, and the host takes it as an abstention.
#[macro_export]
macro_rules! policy {
    ($type:ident : $($hook:ident),+ $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic)]
        mod __toolgate_exports {
            use super::$type;
            $( $crate::bindings::$hook::export!($type with_types_in $crate::bindings::$hook); )+
        }
    };
}

//! Adapters: knowledge of one server, which corrects what goes in and what comes out.
//!
//! Whatever an adapter returns is checked again by the host, which refuses any change that makes
//! a tool look less dangerous. An adapter's instance is warm: it is configured once and then
//! asked many times, until a panic or the host ends it.

use crate::{Error, Request};

pub use crate::bindings::adapter::exports::toolgate::plugin::adapter::Change;
#[doc(hidden)]
pub use crate::bindings::adapter::exports::toolgate::plugin::adapter::Guest as __Guest;

/// Knowledge of one server. What is not implemented changes nothing.
pub trait Adapter: Sized + 'static {
    /// Reads the settings (see [`crate::settings`]) once, before anything else is asked.
    ///
    /// An error keeps the server from starting; its text is for the operator and says which
    /// setting is wrong.
    fn configure() -> Result<Self, Error>;

    /// The change for one tool definition; [`Change::Fail`] hides the tool.
    fn tool(&self, request: &Request) -> Change {
        let _ = request;
        Change::Unchanged
    }

    /// The arguments that the server shall get, asked before the verdict.
    fn arguments(&self, request: &Request) -> Change {
        let _ = request;
        Change::Unchanged
    }

    /// What to do with a result, asked before the result policies.
    fn content(&self, request: &Request) -> Change {
        let _ = request;
        Change::Unchanged
    }
}

/// Exports an adapter: `adapter!(Type);`.
#[macro_export]
macro_rules! adapter {
    ($type:ident) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic)]
        mod __toolgate_exports {
            use super::$type;
            use $crate::adapter::{__Guest, Adapter, Change};
            use $crate::{Error, Request};

            std::thread_local! {
                static ADAPTER: std::cell::OnceCell<$type> = const { std::cell::OnceCell::new() };
            }

            /// Asks the configured adapter. The host configures first; should it not, nothing
            /// passes.
            fn with(ask: impl FnOnce(&$type) -> Change) -> Change {
                $crate::__report_panics();
                ADAPTER.with(|adapter| match adapter.get() {
                    Some(adapter) => ask(adapter),
                    None => Change::Fail("the adapter was asked before it was configured".into()),
                })
            }

            struct Export;

            impl __Guest for Export {
                fn configure() -> Result<(), Error> {
                    $crate::__report_panics();
                    let configured = <$type as Adapter>::configure()?;
                    ADAPTER.with(|adapter| {
                        adapter.set(configured).map_err(|_| {
                            Error::Invalid("the adapter was configured twice".into())
                        })
                    })
                }

                fn tools(requests: Vec<Request>) -> Vec<Change> {
                    requests
                        .iter()
                        .map(|request| with(|adapter| adapter.tool(request)))
                        .collect()
                }

                fn arguments(request: &Request) -> Change {
                    with(|adapter| adapter.arguments(request))
                }

                fn content(request: &Request) -> Change {
                    with(|adapter| adapter.content(request))
                }
            }

            $crate::bindings::adapter::export!(Export with_types_in $crate::bindings::adapter);
        }
    };
}

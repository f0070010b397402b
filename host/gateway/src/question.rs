//! A question that a server asks in the middle of a call, on its way to the client of that call: what
//! is asked, in the words in which it is shown, or why it is not.
//!
//! Contract: a person always reads which server asks and that it is not Toolgate (ELI-002, ELI-003);
//! what is typed goes to the server as it was typed and nowhere else (ELI-009, ELI-016). A form is one
//! form: Toolgate neither splits it nor adds a second question for its values (ELI-004 to ELI-007),
//! except before what looks like a secret (ELI-008, [`sensitive`]).
//!
//! Bounds: [`MAX_FORM`] bytes of a form, [`MAX_SAMPLING`] of a question to a model, 64 fields, 4,000
//! characters of a message, 2,048 of an address.
//!
//! Threat: the text is the server's. It imitates Toolgate, hides characters, writes to the terminal of
//! the one who reads, asks for secrets, sends the person to another page, or has the model of the client
//! do its work.

mod form;
mod sensitive;

use serde_json::value::RawValue;
use toolgate_wire::edit;

use crate::abilities::Abilities;
use crate::redact;

pub(crate) use form::{Confirmed, confirmed, is_unsafe};

/// The question to a person.
pub(crate) const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// Most bytes of a question to a person.
const MAX_FORM: usize = 64 * 1024;
/// Most bytes of a question to a model.
const MAX_SAMPLING: usize = 4 * 1024 * 1024;

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A form for a person.
    Form,
    /// A page for a person to visit.
    Page,
    /// A message of the client's model.
    Sampling,
    /// The directories of the client.
    Roots,
}

/// A question in the form in which a client gets it.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its parameters.
    pub(crate) params: Box<RawValue>,
    /// The names of a form's fields.
    pub(crate) fields: Vec<String>,
    /// What is asked first, where a field looks like a secret (ELI-008).
    pub(crate) confirm: Option<Box<RawValue>>,
    /// Whether something was hidden in its texts.
    pub(crate) hid: bool,
}

impl Kind {
    /// What the method and its parameters ask for; `None` for anything that is no question.
    pub(crate) fn of(method: &str, params: &str) -> Option<Self> {
        Some(match method {
            ELICIT if edit::get(params, "/mode").and_then(edit::string).as_deref() == Some("url") => {
                Self::Page
            }
            ELICIT => Self::Form,
            SAMPLE => Self::Sampling,
            ROOTS => Self::Roots,
            _ => return None,
        })
    }

    /// The method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Page => ELICIT,
            Self::Sampling => SAMPLE,
            Self::Roots => ROOTS,
        }
    }

    /// Whether a person answers it.
    pub(crate) fn is_for_a_person(self) -> bool {
        matches!(self, Self::Form | Self::Page)
    }

    /// What a client must be able to do.
    pub(crate) fn needs(self, params: &str) -> Abilities {
        match self {
            Self::Form => Abilities::FORMS,
            Self::Page => Abilities::PAGES,
            Self::Sampling if edit::get(params, "/tools").is_some() => Abilities::SAMPLING_TOOLS,
            Self::Sampling => Abilities::SAMPLING,
            Self::Roots => Abilities::ROOTS,
        }
    }

    /// The question as it is shown; `Err` says what is wrong with it.
    pub(crate) fn shown(self, server: &str, params: &str) -> Result<Shown, String> {
        let most = if self == Self::Sampling { MAX_SAMPLING } else { MAX_FORM };
        if params.len() > most {
            return Err(format!("it is longer than {most} bytes"));
        }
        let params = without_token(params)?;
        match self {
            Self::Form => form::form(server, &params),
            Self::Page => form::page(server, &params),
            Self::Sampling => sampling(&params),
            Self::Roots => plain(params, false),
        }
    }
}

/// A progress token of the server's would have the client tell it of steps that have no way there.
fn without_token(params: &str) -> Result<String, String> {
    if !params.starts_with('{') {
        return Err("its params are no object".to_owned());
    }
    Ok(toolgate_wire::envelope::remove_progress_token(params).into_owned())
}

/// A model reads it, so what a person would not see goes. `includeContext` goes too: behind one client
/// stand all servers of Toolgate, and one of them must not ask for what the others said.
fn sampling(params: &str) -> Result<Shown, String> {
    let stripped = redact::without_hidden(params).map_err(|error| error.to_string())?;
    let hid = stripped != params;
    let params = stripped;
    let params = match edit::get(&params, "/includeContext") {
        Some(_) => edit::drop_all(&params, &["/includeContext"]).map_err(|error| error.to_string())?,
        None => params,
    };
    plain(params, hid)
}

fn plain(params: String, hid: bool) -> Result<Shown, String> {
    let params = edit::raw(params).map_err(|error| error.to_string())?;
    Ok(Shown { params, fields: Vec::new(), confirm: None, hid })
}

#[cfg(test)]
mod tests;

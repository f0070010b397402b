//! The error with which a server of 2025-11-25 says that a person has to visit a page first (-32042).
//!
//! Contract: each page in it is a question like any other, so it is shown as one or not at all: what the entry
//! says, what the client can do, the address, the policies and the row (ELI-002, ELI-010, ELI-013, SE-05).
//! Where one of them is not shown, the error does not pass.
//!
//! Bounds: [`MAX_PAGES`] pages.

use toolgate_wire::{ErrorObject, codes, edit};

use super::super::questions::Incoming;
use super::super::{Path, Stop};
use crate::question::Kind;
use crate::reply::ErrorCode;

/// Pages of one error at most.
const MAX_PAGES: usize = 16;
const PAGES: &str = "/elicitations";

impl Path {
    /// The error with its pages as a person is to see them; any other error as it is.
    pub(super) async fn with_pages(&self, error: ErrorObject) -> Result<ErrorObject, Stop> {
        if error.code != codes::LEGACY_URL_ELICITATION {
            return Ok(error);
        }
        let data = error.data.as_ref().map_or("{}", |data| data.get());
        let pages = edit::get(data, PAGES).and_then(|pages| edit::elements(pages).ok());
        let pages = pages.filter(|pages| (1..=MAX_PAGES).contains(&pages.len()));
        let Some(pages) = pages else {
            return Err(self.not_visited(&format!("it names no page, or more than {MAX_PAGES}")));
        };
        let mut shown = Vec::new();
        for params in pages {
            if Kind::of(crate::question::ELICIT, params) != Some(Kind::Page) {
                return Err(self.not_visited("what it names is no page"));
            }
            let page = Incoming { key: String::new(), kind: Kind::Page, params: params.to_owned() };
            match self.shown_params(page).await {
                Some(params) => shown.push(params.get().to_owned()),
                None => return Err(self.not_visited("the page is not shown; the audit log says why")),
            }
        }
        let data = edit::set(data, PAGES, &format!("[{}]", shown.join(","))).and_then(edit::raw);
        let data = data.map_err(|fault| self.refuse(ErrorCode::Internal, &fault.to_string()))?;
        Ok(ErrorObject { data: Some(data), ..error })
    }

    fn not_visited(&self, why: &str) -> Stop {
        let text = format!(
            "server '{}' wants a person to visit a page before it goes on: {why}",
            self.handle.server.name
        );
        self.refuse(ErrorCode::Denied, &text)
    }
}

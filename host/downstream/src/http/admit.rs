//! Who is at the door: the path, the bearer token, and whether they agree.
//!
//! The token alone says as whom its holder acts. The path may repeat the persona, so that a client's
//! configuration shows it, and may narrow the view to one server; it can open nothing.

use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use tokio_util::sync::CancellationToken;
use toolgate_base::Secret;
use toolgate_wire::envelope::Era;

use super::Shared;
use super::answer::{self, Checked};
use super::guard::{Single, single};
use crate::backend::{Abilities, Caller};
use crate::caller::{Claims, false_claim};
use crate::options::Credential;

/// Longest token that is looked up, in bytes.
const MAX_TOKEN: usize = 4096;

/// A request whose sender is known.
#[derive(Clone)]
pub(super) struct Admitted {
    /// Who holds the token.
    pub(super) credential: Credential,
    /// The one server this endpoint shows.
    pub(super) server_only: Option<String>,
    /// Whether it is shown under its own names.
    pub(super) plain_names: bool,
    /// What the headers claim; they agree with the credential.
    pub(super) claims: Claims,
    /// The token, to ask again while a stream is open.
    pub(super) token: Secret,
}

impl Admitted {
    /// The caller of a request in a session of this name.
    pub(super) fn caller(&self, session: String, era: Era, claims: Claims, abilities: Abilities) -> Caller {
        Caller {
            persona: self.credential.persona.clone(),
            lane: self.credential.lane,
            credential: self.credential.id.clone(),
            session,
            run_id: claims.run_id,
            thread_id: claims.thread_id,
            era,
            server_only: self.server_only.clone(),
            declared: claims.servers,
            plain_names: self.plain_names,
            leaving: CancellationToken::new(),
            abilities,
        }
    }

    /// Resolves when the token no longer means what it meant, or that cannot be told: a stream outlives
    /// the request that was checked, and must not outlive the token.
    pub(super) async fn revoked(&self, shared: &Shared) {
        loop {
            tokio::time::sleep(shared.options.keep_alive).await;
            match shared.options.tokens.check(self.token.expose()).await {
                Ok(Some(credential)) if credential == self.credential => {}
                _ => return,
            }
        }
    }
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The persona it claims.
    pub(super) persona: Option<String>,
    /// The server it narrows to.
    pub(super) server: Option<String>,
}

impl Target {
    /// Reads `/mcp`, `/mcp/<persona>` or `/mcp/<persona>/<server>`, each with or without a last slash.
    pub(super) fn of(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/mcp")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut target = Self { persona: None, server: None };
        if rest.is_empty() {
            return Some(target);
        }
        let mut names = rest.strip_prefix('/')?.split('/');
        target.persona = Some(name(names.next()?)?);
        target.server = names.next().map(name).unwrap_or_default();
        let whole = rest.matches('/').count() == 1 + usize::from(target.server.is_some());
        whole.then_some(target)
    }
}

/// Names have no characters that a URL would encode, so an encoded one names nothing.
fn name(segment: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (!segment.is_empty() && segment.bytes().all(plain)).then(|| segment.to_owned())
}

/// Checks token, path and headers, in this order.
pub(super) async fn admit(shared: &Shared, target: Target, parts: &Parts) -> Checked<Admitted> {
    let token = token_of(parts)?;
    let credential = match shared.options.tokens.check(token.expose()).await {
        Ok(Some(credential)) => credential,
        Ok(None) => return Err(answer::unauthorized(true).into()),
        Err(error) => {
            tracing::error!(%error, "a request is refused because its token cannot be checked");
            let text = "tokens cannot be checked now; the operator finds the reason in the log";
            return Err(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, text).into());
        }
    };
    if !shared.backend.has_persona(&credential.persona) {
        tracing::warn!(
            credential = %credential.id, persona = %credential.persona,
            "a request is refused: its token is for a persona that this gateway's configuration does not have"
        );
        let text = "this token is for a persona that is not configured any more; the operator configures it \
                    again and restarts the gateway, or issues a token for another one";
        return Err(answer::refuse(StatusCode::FORBIDDEN, text).into());
    }
    if let Some(claimed) = target.persona.as_ref().filter(|persona| **persona != credential.persona) {
        shared.backend.note_false_claim(false_claim("path", &credential, "persona", claimed));
        let text = "this token is not for the persona in the path; use the path of its own persona, or /mcp";
        return Err(answer::refuse(StatusCode::FORBIDDEN, text).into());
    }
    let claims = Claims::of_headers(&parts.headers)
        .and_then(|claims| claims.agree("header", &credential, &*shared.backend))
        .map_err(|error| answer::error(StatusCode::FORBIDDEN, None, error))
        .map_err(Box::new)?;
    let alone = shared.options.server_only.as_ref();
    if let (Some(alone), Some(named)) = (alone, &target.server)
        && alone != named
    {
        return Err(answer::refuse(
            StatusCode::NOT_FOUND,
            "this process serves one server, and not this one",
        )
        .into());
    }
    if let Some(named) = &target.server
        && !shared.backend.has_server(&credential.persona, credential.lane, named)
    {
        let text =
            "this persona has no server of the name in the path; `toolgate mcp list` shows those it has";
        return Err(answer::refuse(StatusCode::NOT_FOUND, text).into());
    }
    let server_only = alone.cloned().or(target.server);
    Ok(Admitted { credential, server_only, plain_names: alone.is_some(), claims, token })
}

fn token_of(parts: &Parts) -> Checked<Secret> {
    let value = match single(&parts.headers, &AUTHORIZATION) {
        Single::None => return Err(answer::unauthorized(false).into()),
        Single::Many => return Err(answer::unauthorized(true).into()),
        Single::One(value) => value.to_str().map_err(|_| Box::new(answer::unauthorized(true)))?,
    };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(answer::unauthorized(false).into());
    }
    if token.is_empty() || token.len() > MAX_TOKEN {
        return Err(answer::unauthorized(true).into());
    }
    Ok(Secret::new(token))
}

#[cfg(test)]
mod tests;

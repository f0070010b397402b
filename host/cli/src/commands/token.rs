//! `toolgate token …`: the credentials of agents on the HTTP endpoint.

use std::path::Path;

use serde_json::json;
use toolgate_config::Config;
use toolgate_store::{AuditRow, Event, Store, TokenInfo};

use crate::args::{Token, TokenIssue};
use crate::exit::Failure;
use crate::{context, operator, output};

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: &Token) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    match command {
        Token::Issue(args) => issue(&config, &store, args).await,
        Token::List(args) => list(&config, &store, args.json),
        Token::Revoke(args) => revoke(&store, &args.id).await,
    }
}

/// Makes a token and prints it once; the store keeps only its digest.
async fn issue(config: &Config, store: &Store, args: &TokenIssue) -> Result<(), Failure> {
    context::operator(config, &args.persona)?;
    let what = format!("This issues a token that acts as persona '{}' in lane {}.", args.persona, args.lane);
    let proven = operator::prove(config, &what)?;
    let issued = store.issue_token(&args.persona, args.lane.as_str()).map_err(context::store_failure)?;
    let row = proven.on(AuditRow::token_issued(&issued.id, &args.persona, args.lane.as_str()));
    store.append(row).await.map_err(context::store_failure)?;
    if args.json {
        return output::json(&json!({
            "id": issued.id, "persona": args.persona, "lane": args.lane.as_str(), "token": issued.secret.expose(),
        }));
    }
    // Standard output is the token alone, so that a script can take it.
    tracing::warn!(
        "token {0} acts as persona '{1}' and is shown this once; `toolgate token revoke {0}` ends it",
        issued.id,
        args.persona
    );
    output::line(issued.secret.expose())
}

fn list(config: &Config, store: &Store, as_json: bool) -> Result<(), Failure> {
    let tokens = store.tokens().map_err(context::store_failure)?;
    // A token outlives its persona, and opens nothing without one.
    let state = |token: &TokenInfo| match token.revoked_at_ms {
        Some(_) => "revoked",
        None if config.personas.contains_key(&token.persona) => "valid",
        None => "no such persona",
    };
    if as_json {
        let rows: Vec<_> = tokens
            .iter()
            .map(|token| {
                let mut row = json!(token);
                if let Some(row) = row.as_object_mut() {
                    row.insert("state".to_owned(), state(token).into());
                }
                row
            })
            .collect();
        return output::json(&json!({ "tokens": rows }));
    }
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            vec![token.id.clone(), token.persona.clone(), token.lane.clone(), state(token).to_owned()]
        })
        .collect();
    output::table(&["TOKEN", "PERSONA", "LANE", "STATE"], &rows)
}

async fn revoke(store: &Store, id: &str) -> Result<(), Failure> {
    if !store.revoke_token(id).map_err(context::store_failure)? {
        return Err(
            Failure::failed(format!("there is no valid token {id}")).hint("see `toolgate token list`")
        );
    }
    let row = AuditRow::new(Event::TokenRevoked).with("token", id);
    store.append(row).await.map_err(context::store_failure)?;
    output::line(&format!("revoked {id}"))
}

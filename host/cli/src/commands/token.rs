//! `toolgate token …`: the credentials of agents on the HTTP endpoint.

use std::path::Path;

use serde_json::json;

use crate::args::Token;
use crate::context;
use crate::exit::Failure;
use crate::output;

/// Makes a token and prints it once; the store keeps only its digest.
pub(crate) async fn run(explicit: Option<&Path>, command: &Token) -> Result<(), Failure> {
    let Token::Issue(args) = command;
    let config = context::config(explicit)?;
    context::operator(&config, &args.persona)?;
    let store = context::store(&config, "cli")?;
    let issued = store.issue_token(&args.persona).map_err(context::store_failure)?;
    store.append(toolgate_store::AuditRow::token_issued(&issued.id, &args.persona)).await.map_err(context::store_failure)?;
    if args.json {
        return output::json(&json!({
            "id": issued.id, "persona": args.persona, "token": issued.secret.expose(),
        }));
    }
    output::line(issued.secret.expose())
}

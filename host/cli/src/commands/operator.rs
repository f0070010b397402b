//! `toolgate operator …`: how the operator is told from an agent with a shell, and what only it may mend.

use std::path::Path;
use std::sync::Arc;

use toolgate_base::SystemClock;
use toolgate_downstream::local::Claim;
use toolgate_store::{AuditRow, Event, OperatorProof, Recovered, Recovery, Store};

use crate::args::{Json, OperatorCommand, OperatorInit};
use crate::exit::Failure;
use crate::{context, operator, output, sys};

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: OperatorCommand) -> Result<(), Failure> {
    match command {
        OperatorCommand::Init(args) => init(explicit, &args).await,
        OperatorCommand::Recover(args) => recover(explicit, &args).await,
    }
}

/// Sets the proof; one that is set already has to be given first.
async fn init(explicit: Option<&Path>, args: &OperatorInit) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "operator")?;
    if operator::proof(&config)? != OperatorProof::None {
        let _ = operator::prove(&config, "This replaces the proof of the operator that is set now.")?;
    }
    let operator = operator::of(&config);
    let (how, told) = if let Some(name) = &args.agents_run_as {
        let agents = other_user(&config.data_dir, name)?;
        operator.set_other_user(agents).map_err(operator::failure)?;
        let owned = config.data_dir.display();
        ("other_user", format!("user {agents} is an agent; the owner of {owned} is the operator"))
    } else {
        let pin = operator::new_pin()?;
        operator.set_pin(&pin).map_err(operator::failure)?;
        ("pin", "the operator PIN is set; verbs that widen ask for it at the terminal".to_owned())
    };
    let digest = operator.digest().map_err(operator::failure)?.unwrap_or_default();
    let row = AuditRow::new(Event::OperatorProofSet)
        .with("proof", how)
        .with("uid", sys::user())
        .with("record", digest);
    store.append(row).await.map_err(context::store_failure)?;
    output::line(&told)
}

/// Makes a lost `state.db` anew. What it allowed stays lost; what it took away is put back.
async fn recover(explicit: Option<&Path>, args: &Json) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    if let Some(pid) = Claim::serving(&config.data_dir).map_err(Failure::failed)? {
        return Err(Failure::failed(format!(
            "process {pid} serves this data directory, with the state that is lost"
        ))
        .hint(format!("end it first: kill {pid}")));
    }
    let what = "This makes a new state.db: what was granted, allowed and issued is void, and every server has to \
                be accepted again.";
    let proven = operator::prove(&config, what)?;
    let servers = config.servers.values().map(|server| (server.identity(), server.name.clone())).collect();
    let recovery = Recovery { approver: proven.approver(), servers };
    let durability = context::durability(&config);
    let recovered = Store::recover(&config.data_dir, durability, Arc::new(SystemClock), &recovery)
        .await
        .map_err(context::store_failure)?;
    if args.json {
        return output::json(&recovered);
    }
    told(&recovered)
}

fn told(recovered: &Recovered) -> Result<(), Failure> {
    output::line("state.db was made anew; asks, grants, allows and tokens of before are void")?;
    if let Some(why) = &recovered.distrusted {
        output::line(&format!("everything is frozen, because {why}"))?;
        output::line("next: look at what is configured, then `toolgate thaw --all`")?;
    }
    output::line(&format!(
        "put back: {}, and {} among what was denied or asked about beforehand",
        output::count(recovered.frozen.len(), "freeze"),
        output::count(recovered.standing, "decision")
    ))?;
    for server in &recovered.servers {
        output::line(&format!("next: toolgate mcp diff {server}, then toolgate mcp pin {server} --accept"))?;
    }
    Ok(())
}

fn other_user(data_dir: &Path, name: &str) -> Result<u32, Failure> {
    let agents = sys::user_id(name)
        .ok_or_else(|| Failure::usage(format!("there is no user '{name}'; give a name or a number")))?;
    let owner = sys::owner(data_dir).map_err(Failure::failed)?;
    if agents == owner || sys::user() != owner {
        return Err(Failure::usage(format!(
            "the data directory belongs to user {owner}: run this as that user, and let agents run as another than it"
        )));
    }
    Ok(agents)
}

//! What to do about each reason for which a registry of plugins, or something in it, is refused.

/// The next step for a code of `RegistryError`, `PublishError` or `IndexError`; none where the message says
/// it, or where nothing helps but to look.
pub(crate) fn of(code: &str) -> Option<&'static str> {
    Some(match code {
        "absent" => {
            "see what there is with `toolgate plugin search`, or with `toolgate registry status` in your own"
        }
        "no-index" => "or install it from ./DIR or https://…/release.dsse.json",
        "no-version" | "yanked" | "young" => {
            "ask for another range, as NAME@^1.2; `toolgate plugin search` lists what there is"
        }
        "revoked" | "key-revoked" => "take another release; `toolgate plugin search` lists what there is",
        "freeze" => {
            "its maintainers renew it with `toolgate registry refresh`; if they did, something between you and them holds it back"
        }
        "sign-in" => {
            "name the host under plugins.hosts in toolgate.yaml with `username` and `password: \"${NAME}\"`; `plugin publish` takes --username and --password-file"
        }
        "not-dialled" => {
            "if its host is meant to be in a private network, say so: `private: true` for it under plugins.hosts in toolgate.yaml, or --private on the command line"
        }
        "unreachable" => {
            "look whether the address is right and reachable; what is installed goes on meanwhile"
        }
        "fingerprint" | "root-old-keys" | "root-new-keys" | "root-member" => {
            "ask the maintainers by another way than this registry which fingerprint is theirs, and change nothing until then"
        }
        "rollback" | "fast-forward" | "equivocation" | "mix-and-match" | "fork" | "checkpoint"
        | "rewritten" | "withdrawn" | "too-fresh" | "disagrees" | "digest" | "malformed" => {
            "try again later in case somebody is just publishing; if it stays, tell its maintainers, and use nothing of it until they explain it"
        }
        "signature" | "not-delegated" => "ask the maintainers of the registry; nothing was taken from it",
        "clock" => "set the clock of this machine",
        "missing-keys" => {
            "give the missing ones with --key FILE, a device with --signer COMMAND --public-key KEY, or a key that is elsewhere with --payload-out DIR --public-key KEY"
        }
        "busy" => "another toolgate works on it; try again when it has ended",
        "never-seen" => "run `toolgate plugin search` once",
        _ => return None,
    })
}

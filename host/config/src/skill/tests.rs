use super::{Lane, Runtime};

#[test]
fn scp_014_scp_015_scp_016_a_runtime_admits_its_own_lane_and_automation() {
    let lanes = |runtime: Runtime| -> Vec<&str> {
        Lane::ALL.into_iter().filter(|lane| runtime.admits(*lane)).map(Lane::as_str).collect()
    };
    assert_eq!(lanes(Runtime::Any), ["main", "background_job", "automation"]);
    assert_eq!(lanes(Runtime::Main), ["main", "automation"]);
    assert_eq!(lanes(Runtime::BackgroundJob), ["background_job", "automation"]);
}

#[test]
fn a_lane_is_known_by_its_exact_name() {
    assert!(Lane::ALL.into_iter().all(|lane| Lane::parse(lane.as_str()) == Some(lane)));
    for wrong in ["", "Main", "background", "any", "main "] {
        assert_eq!(Lane::parse(wrong), None, "{wrong}");
    }
}

//! Names and addresses; nothing is dialled that leaves this machine.

use std::net::IpAddr;

use toolgate_net::guard::Looking;

use super::*;
use crate::Source;

/// Every name leads to one address.
struct Leads(&'static str);

impl Lookup for Leads {
    fn lookup(&self, _name: String) -> Looking {
        let address: IpAddr = self.0.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

async fn code(url: &str, leads: &'static str, hosts: Vec<Host>) -> &'static str {
    let reach = Reach::new(hosts).with_lookup(Arc::new(Leads(leads)));
    match Source::web(url, &reach).unwrap().read("config.json", 100).await {
        Ok(_) => "read",
        Err(error) => error.code(),
    }
}

fn private(host: &str) -> Vec<Host> {
    vec![Host { host: host.to_owned(), private: true, ..Host::default() }]
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_or_beside_it_is_not_dialled() {
    for address in ["127.0.0.1", "::1", "10.1.2.3", "192.168.7.7", "169.254.169.254", "fd00::1", "0.0.0.0"] {
        assert_eq!(code("https://plugins.example/", address, Vec::new()).await, "not-dialled", "{address}");
    }
    for url in ["https://10.1.2.3/", "https://[fd00::1]:8443/x", "https://169.254.169.254/"] {
        assert_eq!(code(url, "192.0.2.1", Vec::new()).await, "not-dialled", "{url}");
    }
    // What somebody says is in a private network may be there, and nowhere closer.
    for address in ["127.0.0.1", "169.254.169.254"] {
        let known = private("plugins.example");
        assert_eq!(code("https://plugins.example/", address, known).await, "not-dialled", "{address}");
    }
    let other = private("other.example");
    assert_eq!(code("https://plugins.example/", "10.1.2.3", other).await, "not-dialled");
}

#[test]
fn a_host_is_known_by_name_and_port_and_its_private_network_by_name() {
    assert_eq!(without_port("plugins.example:8443"), "plugins.example");
    assert_eq!(without_port("[fd00::1]:8443"), "[fd00::1]");
    assert_eq!(without_port("[fd00::1]"), "[fd00::1]");
    let reach = Reach::new(private("plugins.example:8443"));
    assert!(reach.host("Plugins.Example:8443").is_some() && reach.host("plugins.example").is_none());
    let url = Url::parse("https://plugins.example:8443/main/").unwrap();
    assert_eq!(authority(&url), "plugins.example:8443");
}

#[test]
fn an_authority_that_is_none_is_refused_before_anything_is_dialled() {
    for bad in ["nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let host = Host { host: "plugins.example".to_owned(), authorities: bad.into(), ..Host::default() };
        let error = Source::web("https://plugins.example/", &Reach::new(vec![host])).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

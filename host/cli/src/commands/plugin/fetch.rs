//! Where the bytes of a plugin come from: a directory, or an address over https.
//!
//! Bounds: one minute for each file, the same sizes as from disk. Nothing is believed of what comes: the
//! signature decides, so plain http is refused only where somebody else could watch; to this machine it
//! is fine.

use std::path::Path;
use std::time::Duration;

use toolgate_gateway::assemble::{COMPONENT_FILE, MAX_FILE, PluginFiles, RELEASE_FILE};
use toolgate_net::{ClientOptions, client};

use crate::exit::Failure;

/// Longest time for one file.
const PATIENCE: Duration = Duration::from_mins(1);

/// The two files behind a reference.
pub(super) async fn files(reference: &str) -> Result<PluginFiles, Failure> {
    if reference.contains("://") {
        return from_address(reference).await;
    }
    let dir = Path::new(reference);
    if dir.is_dir() {
        return super::install::read_dir(dir);
    }
    Err(Failure::usage(format!("{reference} is no directory and no address"))
        .hint("give ./DIR with component.wasm and release.dsse.json, or https://…/release.dsse.json"))
}

async fn from_address(reference: &str) -> Result<PluginFiles, Failure> {
    let unusable = |why: &str| Failure::usage(format!("{reference} cannot be used: {why}"));
    let address = reqwest::Url::parse(reference).map_err(|error| unusable(&error.to_string()))?;
    let local = address.host_str().is_some_and(toolgate_net::is_loopback);
    if address.scheme() != "https" && !(address.scheme() == "http" && local) {
        return Err(unusable("it is neither https nor plain http to this machine"));
    }
    if !address.path().ends_with(RELEASE_FILE) {
        return Err(unusable("it does not end in release.dsse.json"));
    }
    let component = address.join(COMPONENT_FILE).map_err(|error| unusable(&error.to_string()))?;
    let options = ClientOptions { total_timeout: Some(PATIENCE), ..ClientOptions::default() };
    let client = client(&options).map_err(Failure::failed)?;
    let release = download(&client, address).await?;
    let component = download(&client, component).await?;
    Ok(PluginFiles { plugin: reference.to_owned(), component: component.into(), release: release.into() })
}

async fn download(client: &reqwest::Client, address: reqwest::Url) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::failed(format!("{address} cannot be fetched: {why}"));
    let mut response = client.get(address.clone()).send().await.map_err(|error| failed(error.to_string()))?;
    if !response.status().is_success() {
        return Err(failed(format!("the server answers {}", response.status())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(error.to_string()))? {
        if (bytes.len() + chunk.len()) as u64 > MAX_FILE {
            return Err(failed(format!("it is longer than {MAX_FILE} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

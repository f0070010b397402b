//! `toolgate:plugin/settings`: what the operator wrote for this plugin.

use wasmtime::component::Resource;

use crate::bindings::settings::Host;
use crate::facts::Document;
use crate::state::State;

impl Host for State {
    fn get(&mut self) -> wasmtime::Result<Resource<Document>> {
        let settings = self.shared.settings.clone();
        Ok(self.table.push(settings)?)
    }
}

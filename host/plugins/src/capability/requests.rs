//! `toolgate:plugin/requests`: the facts of one request, one getter each.

use wasmtime::component::Resource;

use crate::bindings::requests::{Host, HostRequest, LabelList, PinState, SurfaceKind};
use crate::facts::{self, Document, SharedFacts};
use crate::state::State;

impl Host for State {}

impl State {
    fn document_handle(
        &mut self,
        document: Option<Document>,
    ) -> wasmtime::Result<Option<Resource<Document>>> {
        Ok(match document {
            Some(document) => Some(self.table.push(document)?),
            None => None,
        })
    }
}

impl HostRequest for State {
    fn persona(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.persona.clone())
    }

    fn lane(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.lane.clone())
    }

    fn session(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        self.knows.more = true;
        Ok(self.table.get(&request)?.session.clone())
    }

    fn server(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.server.clone())
    }

    fn server_identity(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.server_identity.clone())
    }

    fn kind(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<SurfaceKind> {
        Ok(match self.table.get(&request)?.kind {
            facts::SurfaceKind::Server => SurfaceKind::Server,
            facts::SurfaceKind::Instructions => SurfaceKind::Instructions,
            facts::SurfaceKind::Tool => SurfaceKind::Tool,
            facts::SurfaceKind::Prompt => SurfaceKind::Prompt,
            facts::SurfaceKind::Resource => SurfaceKind::Resource,
            facts::SurfaceKind::Template => SurfaceKind::Template,
            facts::SurfaceKind::Question => SurfaceKind::Question,
        })
    }

    fn name(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.name.clone())
    }

    fn label(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<String> {
        Ok(self.table.get(&request)?.label.clone())
    }

    fn has_capabilities(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&request)?.has_capabilities)
    }

    fn matched_label(
        &mut self,
        request: Resource<SharedFacts>,
        list: LabelList,
    ) -> wasmtime::Result<Option<String>> {
        let facts = self.table.get(&request)?;
        Ok(match list {
            LabelList::Allow => facts.matched_allow.clone(),
            LabelList::RequireApproval => facts.matched_approval.clone(),
        })
    }

    fn auto_approved(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&request)?.auto_approved)
    }

    fn host_escape(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&request)?.host_escape)
    }

    fn digest(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&request)?.digest.clone())
    }

    fn pin(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<PinState> {
        Ok(pin_state(self.table.get(&request)?.pin))
    }

    fn surface_pin(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<PinState> {
        Ok(pin_state(self.table.get(&request)?.surface_pin))
    }

    fn read_only_hint(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<Option<bool>> {
        Ok(self.table.get(&request)?.read_only_hint)
    }

    fn destructive_hint(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<Option<bool>> {
        Ok(self.table.get(&request)?.destructive_hint)
    }

    fn definition(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<Option<Resource<Document>>> {
        let definition = self.table.get(&request)?.definition.clone();
        self.knows.definition = true;
        self.document_handle(definition)
    }

    fn document(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<Option<Resource<Document>>> {
        let facts = self.table.get(&request)?;
        let document = facts.document.clone();
        // What the hook list is about is the definition itself.
        let both = document.as_ref().zip(facts.definition.as_ref());
        if both.is_some_and(|(document, definition)| document.is_same(definition)) {
            self.knows.definition = true;
        } else if let Some(document) = &document {
            self.hand_out(document);
        }
        self.document_handle(document)
    }

    fn drop(&mut self, request: Resource<SharedFacts>) -> wasmtime::Result<()> {
        self.table.delete(request)?;
        Ok(())
    }
}

fn pin_state(state: facts::PinState) -> PinState {
    match state {
        facts::PinState::Unpinned => PinState::Unpinned,
        facts::PinState::Matches => PinState::Matches,
        facts::PinState::Differs => PinState::Differs,
        facts::PinState::Unknown => PinState::Unknown,
        facts::PinState::Unreadable => PinState::Unreadable,
    }
}

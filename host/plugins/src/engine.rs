//! The wasmtime engines of the process, their tickers and their places.
//!
//! One engine with a pool for plugins, because stores of different engines must never mix and
//! because a second pool would double the address space. It offers no threads, no 64-bit memories,
//! no GC, no relaxed SIMD and no async: policies and adapters are synchronous, so that a call costs
//! microseconds (spec plugin-host 3.1, 6).
//!
//! Guests with a sealed WASI bring the runtime of their language: megabytes of code, a dozen core
//! instances and more. A pool with room for those would make every other plugin pay for them, so
//! they live in a second engine that allocates on demand and is made with the first of them.
//!
//! Bounds: at most [`PLACES`] live instances in the process, and [`SEALED_PLACES`] sealed ones
//! beside them; a wait for a place ends after [`PLACE_WAIT`]; the pool's tables and memories are
//! sized for that.

mod places;
mod ticker;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails,
};

use crate::limits;
pub(crate) use places::{Place, Places};
pub(crate) use ticker::{TICK, Ticker};

/// Live instances in the process: running policies, installers, and the adapters' warm instances.
const PLACES: usize = 128;

/// Live sealed instances in the process: as many as calls may wait at a time (`waiting`), so at most
/// 1 GiB of guest memory.
const SEALED_PLACES: usize = 16;

/// How long a call waits for a place before it fails as busy.
pub(crate) const PLACE_WAIT: Duration = Duration::from_secs(1);

/// Slots that keep the image of one component's memory mapped after use: each plugin may run on
/// several threads at once, and a slot that changes hands costs more than the call itself.
const WARM_SLOTS: u32 = 64;

/// Bytes of a guest's memory that stay resident between two uses of a slot where the kernel can
/// say which pages are dirty: then only those are reset (spec plugin-host 6: 13 µs a call).
const KEEP_WITH_PAGEMAP_SCAN: usize = 1 << 20;

/// The same where it cannot, and every kept byte is written: little, so that the reset is short.
const KEEP_WITHOUT: usize = 64 << 10;

/// Engine, ticker and places, made once.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) places: Arc<Places>,
}

/// The engine of this process. The first caller makes it; an error then stays.
pub(crate) fn shared() -> Result<&'static Core, String> {
    static CORE: OnceLock<Result<Core, String>> = OnceLock::new();
    CORE.get_or_init(|| make(make_engine()?, PLACES)).as_ref().map_err(Clone::clone)
}

/// The engine of guests with a sealed WASI, likewise. A process without such a guest has none.
pub(crate) fn sealed() -> Result<&'static Core, String> {
    static CORE: OnceLock<Result<Core, String>> = OnceLock::new();
    CORE.get_or_init(|| make(on_demand()?, SEALED_PLACES)).as_ref().map_err(Clone::clone)
}

fn make(engine: Engine, places: usize) -> Result<Core, String> {
    let ticker =
        Ticker::start(engine.weak()).map_err(|error| format!("cannot start the ticker thread: {error}"))?;
    Ok(Core { engine, ticker, places: Arc::new(Places::new(places)) })
}

/// With the pool where the address space allows it, else on demand: slower, and equally safe.
fn make_engine() -> Result<Engine, String> {
    if address_space_is_wide() {
        let mut config = base_config();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
        match Engine::new(&config) {
            Ok(engine) => return Ok(engine),
            Err(error) => {
                tracing::warn!(%error, "no pool for plugin instances; they are allocated on demand");
            }
        }
    }
    on_demand()
}

fn on_demand() -> Result<Engine, String> {
    Engine::new(&base_config()).map_err(|error| format!("cannot make the WebAssembly engine: {error:#}"))
}

fn base_config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(limits::MAX_STACK)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        // Details would be read from an environment variable; a trap's message is enough.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config
}

fn pool() -> PoolingAllocationConfig {
    let count = u32::try_from(PLACES).unwrap_or(u32::MAX);
    let instances = limits::MAX_INSTANCES;
    let tables = limits::MAX_TABLES;
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    let keep = if scan { KEEP_WITH_PAGEMAP_SCAN } else { KEEP_WITHOUT };
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(count)
        .total_core_instances(count.saturating_mul(instances))
        .max_core_instances_per_component(instances)
        .total_memories(count.saturating_mul(limits::MAX_MEMORIES))
        .max_memories_per_component(limits::MAX_MEMORIES)
        .max_memory_size(limits::MAX_MEMORY)
        .total_tables(count.saturating_mul(tables))
        .max_tables_per_component(tables)
        .max_tables_per_module(tables)
        .table_elements(limits::MAX_TABLE_ELEMENTS)
        .max_unused_warm_slots(WARM_SLOTS)
        .linear_memory_keep_resident(keep)
        .table_keep_resident(limits::MAX_TABLE_ELEMENTS * size_of::<usize>())
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Whether one mapping twice as large as the pool's can be reserved. A small address space
/// (`ulimit -v`, 39-bit kernels) must not be filled to the brim by a pool.
fn address_space_is_wide() -> bool {
    const PROBE: u64 = 1 << 41;
    let mut config = Config::new();
    config.memory_reservation(PROBE);
    let Ok(engine) = Engine::new(&config) else {
        return false;
    };
    let mut store = wasmtime::Store::new(&engine, ());
    wasmtime::Memory::new(&mut store, wasmtime::MemoryType::new(0, Some(1))).is_ok()
}

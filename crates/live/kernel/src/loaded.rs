//! The loaded eBPF programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::types::{Composite, Func, FuncProto, Ptr};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType as _};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    Iter, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, set_print,
};
use nix::unistd::Uid;
use tacit_hop::LiveError;

use crate::flows::{Flow, RECORD_BYTES};
use crate::{Settings, refused};

/// Compiled by `bpf/build.sh`.
static RRE: &[u8] = include_bytes!("../bpf/rre.bpf.o");
static FLOWS: &[u8] = include_bytes!("../bpf/flows.bpf.o");

/// Names used in `bpf/`.
const FLOWS_MAP: &str = "tacit_rre_flows";
const LISTING_PROGRAM: &str = "tacit_rre_list";
const CHOOSING_PROGRAM: &str = "rre_choose";
const CONTROL_MAP: &str = "tacit_rre";
/// The kernel's name of the first loaded instance. Further ones have a number appended.
const CONTROL_NAME: &str = "tacit_rre";
/// TCP_CA_NAME_MAX in the kernel's include/net/tcp.h, including the terminator.
const CONTROL_NAME_BYTES: usize = 16;
/// Maximum number of instances loaded at the same time.
const CONTROLS_MAX: u32 = 99;

/// `struct settings` in `bpf/rre.bpf.c`.
const COOKIE_AT: usize = 0;
const RATE_SAMPLE_ARGUMENT_AT: usize = 8;
const TARGET_AT: usize = 12;
const NAME_AT: usize = 16;
const SETTINGS_BYTES: usize = 32;
/// `counts.refused` in `bpf/rre.bpf.c`.
const REFUSED_AT: usize = 8;

/// If this variable is set, all messages of libbpf and of the kernel's verifier are written to standard error.
const LOG_VARIABLE: &str = "TACIT_RRE_LOG";

/// The first message of libbpf since the last program was opened.
static SAID: Mutex<String> = Mutex::new(String::new());

#[expect(clippy::needless_pass_by_value, reason = "libbpf-rs calls it so")]
fn remember(_level: PrintLevel, text: String) {
    if std::env::var_os(LOG_VARIABLE).is_some() {
        // An error here cannot be reported anywhere.
        let _ = io::stderr().write_all(text.as_bytes());
    }
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    // The first message is the cause; others are consequences.
    if said.is_empty() {
        *said = text.trim().to_owned();
    }
}

/// The loaded congestion control. It is unloaded when this value is dropped or the process ends; sockets that use it
/// keep it until they are closed.
#[derive(Debug)]
pub struct Control {
    name: String,
    // Links are dropped before the objects they refer to.
    choices: Vec<Link>,
    _control: Link,
    object: Object,
}

impl Control {
    /// Loads the congestion control. Sockets use it after [`Control::use_in`].
    ///
    /// # Errors
    /// If this machine does not support it.
    pub fn load(settings: Settings) -> Result<Self, LiveError> {
        let rate_sample_argument = examine()?;
        let mut number = 1;
        loop {
            let name = if number == 1 { CONTROL_NAME.to_owned() } else { format!("{CONTROL_NAME}{number}") };
            let mut open = open(RRE)?;
            set_up(&mut open, &name, settings, rate_sample_argument)?;
            let mut object = load(open)?;
            let linked = object
                .maps_mut()
                .find(|map| map.name() == CONTROL_MAP)
                .ok_or_else(|| broken(CONTROL_MAP))?
                .attach_struct_ops();
            match linked {
                Ok(control) => return Ok(Self { name, choices: Vec::new(), _control: control, object }),
                // Another instance has this name.
                Err(error)
                    if error.kind() == libbpf_rs::ErrorKind::AlreadyExists && number < CONTROLS_MAX =>
                {
                    number += 1;
                }
                Err(error) => return Err(explained("registering a congestion control", error)),
            }
        }
    }

    /// The kernel's name of this instance.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes new sockets in a control group and in groups below it use this congestion control.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn use_in(&mut self, cgroup: &File) -> Result<(), LiveError> {
        let program = self.object.progs_mut().find(|program| program.name() == CHOOSING_PROGRAM);
        let program = program.ok_or_else(|| broken(CHOOSING_PROGRAM))?;
        let link = program.attach_cgroup(cgroup.as_raw_fd());
        self.choices.push(link.map_err(|error| explained("attaching to a control group", error))?);
        Ok(())
    }

    /// Number of sockets that the kernel did not permit to use it.
    pub fn refused_sockets(&self) -> u64 {
        let counts = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let value = counts.and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        value
            .and_then(|value| value.get(REFUSED_AT..REFUSED_AT + 8)?.try_into().ok())
            .map_or(0, u64::from_ne_bytes)
    }
}

/// Writes the settings, which differ between loads.
fn set_up(
    open: &mut OpenObject,
    name: &str,
    Settings { only_namespace_cookie, target }: Settings,
    rate_sample_argument: u32,
) -> Result<(), LiveError> {
    let mut padded = [0; CONTROL_NAME_BYTES];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    for mut map in open.maps_mut() {
        let map_name = map.name().to_string_lossy().into_owned();
        if map_name == CONTROL_MAP {
            let value = map.initial_value_mut().ok_or_else(|| broken(CONTROL_MAP))?;
            let at = value.windows(CONTROL_NAME.len()).position(|bytes| bytes == CONTROL_NAME.as_bytes());
            let field = at.and_then(|at| value.get_mut(at..at + CONTROL_NAME_BYTES));
            field.ok_or_else(|| broken(CONTROL_MAP))?.copy_from_slice(&padded);
        } else if map_name.ends_with(".rodata") {
            let value = map.initial_value_mut().and_then(|value| value.get_mut(..SETTINGS_BYTES));
            let settings = value.ok_or_else(|| broken("settings"))?;
            settings[COOKIE_AT..][..8].copy_from_slice(&only_namespace_cookie.unwrap_or(0).to_ne_bytes());
            settings[RATE_SAMPLE_ARGUMENT_AT..][..4].copy_from_slice(&rate_sample_argument.to_ne_bytes());
            let target_us = target.map_or(0, |target| target.as_micros().min(u32::MAX.into()) as u32);
            settings[TARGET_AT..][..4].copy_from_slice(&target_us.to_ne_bytes());
            settings[NAME_AT..][..CONTROL_NAME_BYTES].copy_from_slice(&padded);
        }
    }
    Ok(())
}

fn open(program: &[u8]) -> Result<OpenObject, LiveError> {
    set_print(Some((PrintLevel::Warn, remember)));
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    ObjectBuilder::default().open_memory(program).map_err(|error| explained("reading an eBPF program", error))
}

fn load(open: OpenObject) -> Result<Object, LiveError> {
    open.load().map_err(|error| explained("loading an eBPF program", error))
}

/// The error that the embedded object does not match this file. The tests load it, so this should not occur.
fn broken(what: &str) -> LiveError {
    LiveError::Setup { what: what.to_owned(), said: "is not in the embedded eBPF object".to_owned() }
}

fn explained(what: &str, error: libbpf_rs::Error) -> LiveError {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !Uid::effective().is_root() {
        return refused(
            what,
            io::Error::from(io::ErrorKind::PermissionDenied),
            "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
        );
    }
    // Verifier logs are long. Their first line describes the error.
    let what = match said.lines().next() {
        Some(line) => format!("{what} ({line})"),
        None => what.to_owned(),
    };
    refused(&what, io::Error::other(error), "tacit doctor lists this kernel's features")
}

// --- The kernel's features ------------------------------------------------------------------------

/// Type information of the kernel.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Returns an error if the kernel lacks a feature. Otherwise returns the position of the rate sample among the
/// arguments of `cong_control`.
fn examine() -> Result<u32, LiveError> {
    let lacks = |what: &str, advice| refused(what, io::Error::from(io::ErrorKind::Unsupported), advice);
    if !Path::new(KERNEL_TYPES).exists() {
        return Err(lacks(
            "this kernel does not describe its types (no /sys/kernel/btf/vmlinux)",
            "use one that was built with CONFIG_DEBUG_INFO_BTF",
        ));
    }
    let types = Btf::from_vmlinux().map_err(|error| explained("reading the kernel's types", error))?;
    if types.type_by_name::<Composite<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(lacks(
            "this kernel takes no congestion control as eBPF",
            "use one that was built with CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL",
        ));
    }
    // The first kernel in which a congestion control is unloaded together with the process that loaded it.
    if types.type_by_name::<Func<'_>>("bpf_struct_ops_link_create").is_none() {
        return Err(lacks(
            "this kernel cannot drop a congestion control by itself",
            "use Linux 6.4 or later",
        ));
    }
    match arguments_of_cong_control(&types) {
        Some(4) => Ok(3),
        Some(2) => Ok(1),
        _ => Err(lacks("this kernel calls congestion controls in a way that is new", "use a newer tacit")),
    }
}

fn arguments_of_cong_control(types: &Btf<'_>) -> Option<usize> {
    let operations = types.type_by_name::<Composite<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer: Ptr<'_> = types.type_by_id::<BtfType<'_>>(member.ty)?.try_into().ok()?;
    let function: FuncProto<'_> = pointer.referenced_type().try_into().ok()?;
    Some(function.len())
}

/// Loads the congestion control and unloads it.
///
/// # Errors
/// If this fails, with the reason.
pub fn check() -> Result<String, LiveError> {
    let rate_sample_argument = examine()?;
    let mut control = open(RRE)?;
    set_up(&mut control, CONTROL_NAME, Settings::default(), rate_sample_argument)?;
    load(control)?;
    let cgroups = crate::cgroup::root()?;
    Ok(format!("loads; cgroup2 on {}", cgroups.display()))
}

/// Loads the iterator over flows and unloads it. A kernel may accept the congestion control but refuse this, because a
/// security module can forbid tracing programs.
///
/// # Errors
/// If this fails, with the reason.
pub fn check_status() -> Result<String, LiveError> {
    examine()?;
    load(open(FLOWS)?)?;
    Ok("loads".to_owned())
}

// --- Flows ----------------------------------------------------------------------------------------

/// The flows of every instance loaded on this machine by any process.
///
/// # Errors
/// If the kernel does not permit it.
pub fn read_flows() -> Result<Vec<Flow>, LiveError> {
    examine()?;
    let object = load(open(FLOWS)?)?;
    let program = object.progs_mut().find(|program| program.name() == LISTING_PROGRAM);
    let program = program.ok_or_else(|| broken(LISTING_PROGRAM))?;
    let own = open(RRE)?;
    let own = own.maps().find(|map| map.name() == FLOWS_MAP).ok_or_else(|| broken(FLOWS_MAP))?;
    let mut flows = Vec::new();
    // Another version of tacit may store other data per flow.
    let same = |name: &OsStr, bytes: u32| name == FLOWS_MAP && bytes == own.value_size();
    for map in MapInfoIter::default().filter(|map| same(&map.name, map.value_size)) {
        // It may have been unloaded in the meantime.
        let Ok(map) = MapHandle::from_map_id(map.id) else { continue };
        let link = program.attach_iter(map.as_fd());
        let link = link.map_err(|error| explained("attaching to flows", error))?;
        let mut records = Vec::new();
        Iter::new(&link)
            .map_err(|error| explained("reading flows", error))?
            .read_to_end(&mut records)
            .map_err(LiveError::io("flows"))?;
        flows.extend(records.chunks_exact(RECORD_BYTES).filter_map(Flow::read));
    }
    flows.sort();
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings are written at the correct offsets of the object.
    #[test]
    fn the_embedded_object_has_its_settings_where_they_are_written() {
        let open = ObjectBuilder::default().open_memory(RRE).unwrap();
        let settings = open.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
        let mut expected = [0; SETTINGS_BYTES];
        expected[RATE_SAMPLE_ARGUMENT_AT] = 3;
        expected[NAME_AT..][..CONTROL_NAME.len()].copy_from_slice(CONTROL_NAME.as_bytes());
        assert_eq!(settings.initial_value().unwrap(), expected);
        assert!(open.maps().any(|map| map.name() == FLOWS_MAP));
        assert!(open.progs().any(|program| program.name() == CHOOSING_PROGRAM));
    }

    #[test]
    fn a_name_is_written_in_both_places() {
        let mut open = ObjectBuilder::default().open_memory(RRE).unwrap();
        let settings = Settings { only_namespace_cookie: Some(7), ..Settings::default() };
        set_up(&mut open, "tacit_rre42", settings, 1).unwrap();
        let with_name = open.maps().filter(|map| {
            let value = map.initial_value().unwrap_or_default();
            value.windows(12).any(|bytes| bytes == b"tacit_rre42\0")
        });
        assert_eq!(with_name.count(), 2);
    }
}

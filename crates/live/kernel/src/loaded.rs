//! The loaded eBPF programs of TCP-RRE.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::unistd::Uid;
use tacit_hop::LiveError;

use crate::bpf::{self, Attach, MapDefinition};
use crate::flows::{Flow, RECORD_BYTES};
use crate::kernel_types::{FUNC, KernelTypes, Structure};
use crate::object::{Kind, Loaded, Object, ObjectError, failed};
use crate::{Settings, refused};

/// Compiled by `bpf/build.sh`.
static RRE: &[u8] = include_bytes!("../bpf/rre.bpf.o");
static FLOWS: &[u8] = include_bytes!("../bpf/flows.bpf.o");

/// Names used in `bpf/`.
const FLOWS_MAP: &str = "tacit_rre_flows";
const LISTING_PROGRAM: &str = "tacit_rre_list";
const CHOOSING_PROGRAM: &str = "rre_choose";
/// The members of `struct tcp_congestion_ops` that the program has.
const OPERATIONS: [(&str, &str); 6] = [
    ("init", "rre_init"),
    ("ssthresh", "rre_ssthresh"),
    ("cong_control", "rre_cong_control"),
    ("set_state", "rre_set_state"),
    ("cwnd_event", "rre_cwnd_event"),
    ("undo_cwnd", "rre_undo_cwnd"),
];
/// The kernel's name of the first loaded instance. Further ones have a number appended.
const CONTROL_NAME: &str = "tacit_rre";
/// TCP_CA_NAME_MAX in the kernel's include/net/tcp.h, including the terminator.
const CONTROL_NAME_BYTES: usize = 16;
/// Maximum number of instances loaded at the same time.
const CONTROLS_MAX: u32 = 99;
/// BPF_MAP_TYPE_STRUCT_OPS and BPF_F_LINK (include/uapi/linux/bpf.h).
const STRUCT_OPS_MAP: u32 = 26;
const STRUCT_OPS_BY_LINK: u32 = 1 << 13;
/// The function that stands for iterators over the storage of sockets (the kernel's net/core/bpf_sk_storage.c).
const ITERATOR: &str = "bpf_iter_bpf_sk_storage_map";

/// `struct settings` in `bpf/rre.bpf.c`.
const COOKIE_AT: usize = 0;
const RATE_SAMPLE_ARGUMENT_AT: usize = 8;
const TARGET_AT: usize = 12;
const NAME_AT: usize = 16;
const SETTINGS_BYTES: usize = 32;
/// `counts.refused` there.
const REFUSED_AT: usize = 8;

/// The loaded congestion control. It is unloaded when this value is dropped or the process ends; sockets that use it
/// keep it until they are closed.
#[derive(Debug)]
pub struct Control {
    name: String,
    // Links are dropped before the objects they refer to.
    choices: Vec<OwnedFd>,
    _control: OwnedFd,
    loaded: Loaded,
}

impl Control {
    /// Loads the congestion control. Sockets use it after [`Control::use_in`].
    ///
    /// # Errors
    /// If this machine does not support it.
    pub fn load(settings: Settings) -> Result<Self, LiveError> {
        let kernel = Kernel::examine()?;
        let mut number = 1;
        loop {
            let name = if number == 1 { CONTROL_NAME.to_owned() } else { format!("{CONTROL_NAME}{number}") };
            let loaded = kernel.load(settings, &name).map_err(explained)?;
            match kernel.register(&loaded, &name) {
                Ok(control) => return Ok(Self { name, choices: Vec::new(), _control: control, loaded }),
                // Another instance has this name.
                Err(error)
                    if error.source.kind() == io::ErrorKind::AlreadyExists && number < CONTROLS_MAX =>
                {
                    number += 1;
                }
                Err(error) => return Err(explained(error)),
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
        let program = self.loaded.program(CHOOSING_PROGRAM).map_err(explained)?;
        let link = bpf::attach(program, cgroup.as_raw_fd(), Attach::CgroupSockOps);
        self.choices.push(link.map_err(failed("attaching to a control group")).map_err(explained)?);
        Ok(())
    }

    /// Number of sockets that the kernel did not permit to use it.
    pub fn refused_sockets(&self) -> u64 {
        let counts = self.loaded.value(".bss").unwrap_or_default();
        counts.get(REFUSED_AT..).and_then(<[u8]>::first_chunk).map_or(0, |count| u64::from_ne_bytes(*count))
    }
}

/// The name as the kernel stores it.
fn padded(name: &str) -> [u8; CONTROL_NAME_BYTES] {
    let mut padded = [0; CONTROL_NAME_BYTES];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    padded
}

/// `struct settings` in `bpf/rre.bpf.c`.
fn constants(settings: Settings, name: &str, rate_sample_argument: u32) -> [u8; SETTINGS_BYTES] {
    let mut bytes = [0; SETTINGS_BYTES];
    let target_us = settings.target.map_or(0, |target| target.as_micros().min(u32::MAX.into()) as u32);
    bytes[COOKIE_AT..][..8].copy_from_slice(&settings.only_namespace_cookie.unwrap_or(0).to_ne_bytes());
    bytes[RATE_SAMPLE_ARGUMENT_AT..][..4].copy_from_slice(&rate_sample_argument.to_ne_bytes());
    bytes[TARGET_AT..][..4].copy_from_slice(&target_us.to_ne_bytes());
    bytes[NAME_AT..].copy_from_slice(&padded(name));
    bytes
}

fn explained(ObjectError { what, source }: ObjectError) -> LiveError {
    if source.kind() == io::ErrorKind::PermissionDenied && !Uid::effective().is_root() {
        return refused(&what, source, "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN");
    }
    refused(&what, source, "tacit doctor lists this kernel's features")
}

// --- The kernel's features ------------------------------------------------------------------------

/// What the programs need of the running kernel.
#[derive(Debug)]
struct Kernel {
    /// `struct tcp_congestion_ops`.
    operations: Structure,
    /// `struct bpf_struct_ops_tcp_congestion_ops`: the value of its map.
    value: Structure,
    /// The position of the rate sample among the arguments of `cong_control`.
    rate_sample_argument: u32,
    /// The function that stands for iterators over the storage of sockets.
    iterator: Option<u32>,
}

impl Kernel {
    /// Returns an error if the kernel lacks a feature.
    fn examine() -> Result<Self, LiveError> {
        let lacks = |what: &str, advice| refused(what, io::Error::from(io::ErrorKind::Unsupported), advice);
        let types = KernelTypes::read().map_err(LiveError::io("the kernel's types"))?.ok_or_else(|| {
            lacks(
                "this kernel does not describe its types (no /sys/kernel/btf/vmlinux)",
                "use one that was built with CONFIG_DEBUG_INFO_BTF",
            )
        })?;
        let found =
            types.structure("tcp_congestion_ops").zip(types.structure("bpf_struct_ops_tcp_congestion_ops"));
        let Some((operations, value)) = found else {
            return Err(lacks(
                "this kernel takes no congestion control as eBPF",
                "use one that was built with CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL",
            ));
        };
        // The first kernel in which a congestion control is unloaded together with the process that loaded it.
        if types.id(FUNC, "bpf_struct_ops_link_create").is_none() {
            return Err(lacks(
                "this kernel cannot drop a congestion control by itself",
                "use Linux 6.4 or later",
            ));
        }
        let cong_control = operations.member("cong_control");
        let rate_sample_argument = match cong_control.and_then(|(_, member)| types.arguments(member.type_id))
        {
            Some(4) => 3,
            Some(2) => 1,
            _ => {
                return Err(lacks(
                    "this kernel calls congestion controls in a way that is new",
                    "use a newer tacit",
                ));
            }
        };
        let iterator = types.id(FUNC, ITERATOR);
        Ok(Self { operations, value, rate_sample_argument, iterator })
    }

    fn load(&self, settings: Settings, name: &str) -> Result<Loaded, ObjectError> {
        let mut object = Object::parse(RRE)?;
        object.set_constants(&constants(settings, name, self.rate_sample_argument))?;
        let mut programs = vec![(CHOOSING_PROGRAM, Kind::SockOps)];
        for (member, program) in OPERATIONS {
            let (member, _) = self.member(member)?;
            programs.push((program, Kind::Operation { structure: self.operations.id, member }));
        }
        object.load(&programs)
    }

    /// Number and offset of a member of `struct tcp_congestion_ops`.
    fn member(&self, name: &str) -> Result<(u32, usize), ObjectError> {
        let member = self.operations.member(name).map(|(number, member)| (number, member.at_byte));
        member.ok_or_else(|| failed(name)(io::ErrorKind::Unsupported.into()))
    }

    /// Makes the programs a congestion control, until the returned file is closed.
    fn register(&self, loaded: &Loaded, name: &str) -> Result<OwnedFd, ObjectError> {
        let mut value = vec![0; self.value.bytes as usize];
        let data_at = self.value.member("data").map_or(0, |(_, member)| member.at_byte);
        let mut write = |member: &str, bytes: &[u8]| {
            let at_byte = data_at + self.member(member)?.1;
            let field = value.get_mut(at_byte..at_byte + bytes.len());
            field.ok_or_else(|| failed(member)(io::ErrorKind::InvalidData.into()))?.copy_from_slice(bytes);
            Ok(())
        };
        for (member, program) in OPERATIONS {
            write(member, &(loaded.program(program)?.as_raw_fd() as u64).to_ne_bytes())?;
        }
        write("name", &padded(name))?;
        let registered = bpf::create_map(&MapDefinition {
            name: CONTROL_NAME,
            kind: STRUCT_OPS_MAP,
            key_bytes: 4,
            value_bytes: self.value.bytes,
            entries_max: 1,
            flags: STRUCT_OPS_BY_LINK,
            types: Some((&loaded.types, 0, 0)),
            kernel_value_type: self.value.id,
        })
        .and_then(|map| {
            bpf::write_entry(&map, 0, &value)?;
            bpf::attach(&map, 0, Attach::StructOps)
        });
        registered.map_err(failed("registering a congestion control"))
    }

    fn load_iterator(&self) -> Result<Loaded, ObjectError> {
        let unsupported = || failed("listing the storage of sockets")(io::ErrorKind::Unsupported.into());
        let function = self.iterator.ok_or_else(unsupported)?;
        Object::parse(FLOWS)?.load(&[(LISTING_PROGRAM, Kind::Iterator { function })])
    }
}

/// Loads the congestion control and unloads it.
///
/// # Errors
/// If this fails, with the reason.
pub fn check() -> Result<String, LiveError> {
    Kernel::examine()?.load(Settings::default(), CONTROL_NAME).map_err(explained)?;
    let cgroups = crate::cgroup::root()?;
    Ok(format!("loads; cgroup2 on {}", cgroups.display()))
}

/// Loads the iterator over flows and unloads it. A kernel may accept the congestion control but refuse this, because a
/// security module can forbid tracing programs.
///
/// # Errors
/// If this fails, with the reason.
pub fn check_status() -> Result<String, LiveError> {
    Kernel::examine()?.load_iterator().map_err(explained)?;
    Ok("loads".to_owned())
}

// --- Flows ----------------------------------------------------------------------------------------

/// The flows of every instance loaded on this machine by any process.
///
/// # Errors
/// If the kernel does not permit it.
pub fn read_flows() -> Result<Vec<Flow>, LiveError> {
    let loaded = Kernel::examine()?.load_iterator().map_err(explained)?;
    let program = loaded.program(LISTING_PROGRAM).map_err(explained)?;
    // Another version of tacit may store other data per flow.
    let value_bytes =
        Object::parse(RRE).and_then(|object| object.value_bytes(FLOWS_MAP)).map_err(explained)?;
    let maps = bpf::maps_named(FLOWS_MAP, value_bytes);
    let mut flows = Vec::new();
    for map in maps.map_err(failed("finding flows")).map_err(explained)? {
        let mut records = Vec::new();
        bpf::iterate(program, &map)
            .map_err(failed("attaching to flows"))
            .map_err(explained)?
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
        let object = Object::parse(RRE).unwrap();
        assert_eq!(object.constants(), constants(Settings::default(), CONTROL_NAME, 3));
        assert!(object.value_bytes(FLOWS_MAP).is_ok());
    }

    #[test]
    fn a_kernel_may_have_members_at_other_places() {
        let settings = Settings { only_namespace_cookie: Some(7), ..Settings::default() };
        let written = constants(settings, "tacit_rre42", 1);
        assert_eq!(
            (&written[..9], &written[NAME_AT..][..12]),
            (&[7, 0, 0, 0, 0, 0, 0, 0, 1][..], &b"tacit_rre42\0"[..])
        );
    }
}

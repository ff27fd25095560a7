//! Loads objects of eBPF that clang has compiled. aya-obj reads and links them; the kinds of programs that it does not
//! know, such as congestion controls, are the reason why their loading is here.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use aya_obj::btf::{Btf, BtfFeatures};
use aya_obj::generated::bpf_insn;
use aya_obj::{EbpfSectionKind, Map};

use crate::bpf::{self, Attach, MapDefinition, ProgramDefinition};

/// `enum bpf_prog_type`.
const SCHED_CLS: u32 = 3;
const SOCK_OPS: u32 = 13;
const TRACING: u32 = 26;
const STRUCT_OPS: u32 = 27;
const SYSCALL: u32 = 31;
/// BPF_F_SLEEPABLE.
const SLEEPABLE: u32 = 1 << 4;
/// `enum bpf_map_type`.
const RINGBUF: u32 = 27;
/// The verifier's log of the largest program takes half of it.
const LOG_BYTES: usize = 4 << 20;
/// If this variable is set, the whole log of the kernel's verifier is written to standard error.
const LOG_VARIABLE: &str = "TACIT_BPF_LOG";

/// What the kernel did not do, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct ObjectError {
    pub(crate) what: String,
    pub(crate) source: io::Error,
}

/// Adds what was being done to an error of the kernel.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ObjectError {
    let what = what.into();
    move |source| ObjectError { what, source }
}

/// The error that an object does not match this program. The tests load each, so this should not occur.
fn broken(error: impl Into<Box<dyn Error + Send + Sync>>) -> ObjectError {
    ObjectError { what: "reading an eBPF object".to_owned(), source: io::Error::other(error) }
}

/// The kind of a program.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A member of a structure of operations: the structure's number in the kernel's types, and the member's in it.
    Operation {
        /// Number of the structure.
        structure: u32,
        /// Number of the member.
        member: u32,
    },
    /// Called for events of sockets in a control group.
    SockOps,
    /// An iterator: the number in the kernel's types of the function that stands for it.
    Iterator {
        /// Number of the function.
        function: u32,
    },
    /// At the ingress of a device.
    Ingress,
    /// At the egress of a device.
    Egress,
    /// Run by this process.
    Syscall,
}

impl Kind {
    /// Type, flags, expected attach type and number in the kernel's types.
    fn numbers(self) -> (u32, u32, u32, u32) {
        match self {
            Self::Operation { structure, member } => (STRUCT_OPS, 0, member, structure),
            Self::SockOps => (SOCK_OPS, 0, Attach::CgroupSockOps as u32, 0),
            Self::Iterator { function } => (TRACING, 0, Attach::TraceIter as u32, function),
            Self::Ingress => (SCHED_CLS, 0, Attach::TcxIngress as u32, 0),
            Self::Egress => (SCHED_CLS, 0, Attach::TcxEgress as u32, 0),
            Self::Syscall => (SYSCALL, SLEEPABLE, 0, 0),
        }
    }
}

/// A compiled object.
#[derive(Debug)]
pub struct Object(aya_obj::Object);

/// Maps and programs in the kernel, by name. It removes them with the last of these files.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) types: OwnedFd,
    /// With the length of the values of each.
    maps: BTreeMap<String, (OwnedFd, usize)>,
    programs: BTreeMap<String, OwnedFd>,
}

impl Object {
    /// Reads an object.
    ///
    /// # Errors
    /// If it is not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, ObjectError> {
        aya_obj::Object::parse(bytes).map(Self).map_err(broken)
    }

    fn map(&self, name: &str) -> Result<&Map, ObjectError> {
        self.0.maps.get(name).ok_or_else(|| broken(format!("there is no map {name}")))
    }

    /// The length of the values of a map.
    pub(crate) fn value_bytes(&self, map: &str) -> Result<u32, ObjectError> {
        Ok(self.map(map)?.value_size())
    }

    /// The constants.
    #[cfg(test)]
    pub(crate) fn constants(&self) -> &[u8] {
        self.map(".rodata").unwrap().data()
    }

    /// Sets the constants, which precede all others of the object.
    pub(crate) fn set_constants(&mut self, constants: &[u8]) -> Result<(), ObjectError> {
        let map = self.0.maps.get_mut(".rodata").map(Map::data_mut);
        let there = map.and_then(|map| map.get_mut(..constants.len()));
        there.ok_or_else(|| broken("it has fewer constants"))?.copy_from_slice(constants);
        Ok(())
    }

    /// Loads the maps and `programs`, by name.
    ///
    /// # Errors
    /// If the kernel refuses one, with the verifier's last words.
    pub fn load(self, programs: &[(&str, Kind)]) -> Result<Loaded, ObjectError> {
        let Self(mut object) = self;
        // Each of these is older than Linux 6.4.
        let features = BtfFeatures::new(true, true, true, true, true, true, true, true);
        let types = object.fixup_and_sanitize_btf(&features).map_err(broken)?;
        let types = types.ok_or_else(|| broken("it has no type information"))?.to_bytes();
        let types = bpf::load_types(&types).map_err(failed("loading type information"))?;
        if object.has_btf_relocations() {
            let kernel = Btf::from_sys_fs().map_err(broken)?;
            object.relocate_btf(&kernel).map_err(broken)?;
        }
        let definitions = BTreeMap::from_iter(std::mem::take(&mut object.maps));
        let mut maps = BTreeMap::new();
        for (name, map) in &definitions {
            maps.insert(name.clone(), (create(name, map, &types)?, map.value_size() as usize));
        }
        let text = object.functions.keys().map(|(section, _)| *section).collect::<HashSet<_>>();
        let created = definitions.iter().map(|(name, map)| (name.as_str(), maps[name].0.as_raw_fd(), map));
        object.relocate_maps(created, &text).map_err(broken)?;
        object.relocate_calls(&text).map_err(broken)?;
        let loaded = programs.iter().map(|(name, kind)| {
            let program = object.programs.get(*name).and_then(|program| {
                Some((program.license.as_c_str(), object.functions.get(&program.function_key())?))
            });
            let (license, function) = program.ok_or_else(|| broken(format!("there is no program {name}")))?;
            let instructions: Vec<u8> = function.instructions.iter().flat_map(encode).collect();
            let functions = function.func_info.func_info_bytes();
            let (kind, flags, expected_attach_type, kernel_type) = kind.numbers();
            let (count, each) = (function.func_info.len() as u32, function.func_info_rec_size as u32);
            let functions = (&functions[..], count, each);
            load(&ProgramDefinition {
                name,
                kind,
                flags,
                expected_attach_type,
                kernel_type,
                license,
                instructions: &instructions,
                types: &types,
                functions,
            })
            .map(|program| ((*name).to_owned(), program))
        });
        let programs = loaded.collect::<Result<_, _>>()?;
        Ok(Loaded { types, maps, programs })
    }
}

/// `struct bpf_insn`: code, two registers, offset, constant.
fn encode(instruction: &bpf_insn) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[0] = instruction.code;
    bytes[1] = instruction.dst_reg() | instruction.src_reg() << 4;
    bytes[2..4].copy_from_slice(&instruction.off.to_ne_bytes());
    bytes[4..].copy_from_slice(&instruction.imm.to_ne_bytes());
    bytes
}

/// Creates a map with its first value.
fn create(name: &str, map: &Map, types: &OwnedFd) -> Result<OwnedFd, ObjectError> {
    // Rings take no types.
    let types = match map {
        Map::Btf(map_of_types) if map.map_type() != RINGBUF => {
            Some((types, map_of_types.def.btf_key_type_id, map_of_types.def.btf_value_type_id))
        }
        _ => None,
    };
    let created = bpf::create_map(&MapDefinition {
        name,
        kind: map.map_type(),
        key_bytes: map.key_size(),
        value_bytes: map.value_size(),
        entries_max: map.max_entries(),
        flags: map.map_flags(),
        types,
        kernel_value_type: 0,
    })
    .map_err(failed(format!("creating the map {name}")))?;
    if map.section_kind() == EbpfSectionKind::Rodata {
        // The verifier takes frozen values for constants.
        bpf::write_entry(&created, 0, map.data())
            .and_then(|()| bpf::freeze(&created))
            .map_err(failed("writing constants"))?;
    }
    Ok(created)
}

/// Loads a program. The log costs time, so loading begins without it.
fn load(program: &ProgramDefinition<'_>) -> Result<OwnedFd, ObjectError> {
    let first = match bpf::load_program(program, &mut []) {
        Ok(loaded) => return Ok(loaded),
        Err(error) => error,
    };
    let mut log = vec![0; LOG_BYTES];
    if let Ok(loaded) = bpf::load_program(program, &mut log) {
        return Ok(loaded);
    }
    let log = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    if std::env::var_os(LOG_VARIABLE).is_some() {
        // An error here cannot be reported anywhere.
        let _ = io::Write::write_all(&mut io::stderr(), log.as_bytes());
    }
    // Statistics follow the reason.
    let reason = log.lines().rev().find(|line| !line.starts_with("processed ") && !line.is_empty());
    let what = match reason {
        Some(reason) => format!("loading the program {} ({reason})", program.name),
        None => format!("loading the program {}", program.name),
    };
    Err(ObjectError { what, source: first })
}

impl Loaded {
    pub(crate) fn program(&self, name: &str) -> Result<&OwnedFd, ObjectError> {
        self.programs.get(name).ok_or_else(|| broken(format!("the program {name} was not loaded")))
    }

    pub(crate) fn take_program(&mut self, name: &str) -> Result<OwnedFd, ObjectError> {
        self.programs.remove(name).ok_or_else(|| broken(format!("the program {name} was not loaded")))
    }

    pub(crate) fn take_map(&mut self, name: &str) -> Result<OwnedFd, ObjectError> {
        self.maps.remove(name).map(|(map, _)| map).ok_or_else(|| broken(format!("there is no map {name}")))
    }

    /// Runs a program of [`Kind::Syscall`] with `context`, which it may change.
    ///
    /// # Errors
    /// If the kernel does not run it, or it does not return 0.
    pub fn run(&self, program: &str, context: &mut [u8]) -> Result<(), ObjectError> {
        bpf::run(self.program(program)?, context).map_err(failed(format!("running {program}")))
    }

    /// The first value of a map with numbered entries.
    ///
    /// # Errors
    /// If there is no such map, or it is no array.
    pub fn value(&self, map: &str) -> Result<Vec<u8>, ObjectError> {
        let (found, value_bytes) =
            self.maps.get(map).ok_or_else(|| broken(format!("there is no map {map}")))?;
        bpf::read_entry(found, 0, *value_bytes).map_err(failed(format!("reading {map}")))
    }
}

//! The kernel's type information (BTF), as Documentation/bpf/btf.rst of the kernel describes it.

use std::io;
use std::path::Path;

/// Type information of the kernel.
const PATH: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

/// `BTF_KIND_*`.
const PTR: u32 = 2;
const STRUCT: u32 = 4;
pub(crate) const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
/// Bytes of a type before what its kind adds.
const TYPE_BYTES: usize = 12;
/// Bytes of a member of a structure: name, type, offset in bits.
const MEMBER_BYTES: usize = 12;

/// What follows a type: bytes once, and bytes per entry. By `BTF_KIND_*`.
const SIZES: [(usize, usize); 20] = [
    (0, 0),
    (4, 0),
    (0, 0),
    (12, 0),
    (0, MEMBER_BYTES),
    (0, MEMBER_BYTES),
    (0, 8),
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 8),
    (4, 0),
    (0, 12),
    (0, 0),
    (4, 0),
    (0, 0),
    (0, 12),
];

/// Type information.
#[derive(Debug)]
pub(crate) struct KernelTypes {
    bytes: Vec<u8>,
    strings_at: usize,
    /// Where each type begins. Type 0 is `void`.
    types: Vec<usize>,
}

/// A structure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Structure {
    pub id: u32,
    pub bytes: u32,
    pub members: Vec<Member>,
}

/// A member of a structure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub name: String,
    pub type_id: u32,
    pub at_byte: usize,
}

impl Structure {
    /// The number of a member, and the member.
    pub fn member(&self, name: &str) -> Option<(u32, &Member)> {
        (0..).zip(&self.members).find(|(_, member)| member.name == name)
    }
}

impl KernelTypes {
    /// Those of the running kernel; `None` if it has none.
    pub fn read() -> io::Result<Option<Self>> {
        if !Path::new(PATH).exists() {
            return Ok(None);
        }
        let parsed = Self::parse(std::fs::read(PATH)?);
        parsed
            .map(Some)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{PATH} cannot be read")))
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        if bytes.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let header = |at: usize| Some(half(&bytes, at)? as usize);
        let (start, len) = (header(4)?.checked_add(header(8)?)?, header(12)?);
        let strings_at = header(4)?.checked_add(header(16)?)?;
        let mut types = vec![0];
        let mut at = start;
        while at < start.checked_add(len)? {
            let info = half(&bytes, at + 4)?;
            let (once, each) = *SIZES.get((info >> 24 & 0x1f) as usize)?;
            types.push(at);
            at += TYPE_BYTES + once + each * (info & 0xffff) as usize;
        }
        Some(Self { bytes, strings_at, types })
    }

    /// The number of a type by its kind and name.
    pub fn id(&self, kind: u32, name: &str) -> Option<u32> {
        (0..)
            .zip(&self.types)
            .skip(1)
            .find(|(_, at)| self.kind(**at) == Some(kind) && self.name(**at) == Some(name))
            .map(|(id, _)| id)
    }

    /// A structure by its name.
    pub fn structure(&self, name: &str) -> Option<Structure> {
        let id = self.id(STRUCT, name)?;
        let at = self.types[id as usize];
        let members = (0..self.entries(at)?).map(|number| {
            let member = at + TYPE_BYTES + MEMBER_BYTES * number;
            let (name, type_id) = (self.name(member)?.to_owned(), half(&self.bytes, member + 4)?);
            // The upper bits are the length of a bit field where the structure has any.
            let at_byte = (half(&self.bytes, member + 8)? & 0xff_ffff) as usize / 8;
            Some(Member { name, type_id, at_byte })
        });
        Some(Structure { id, bytes: half(&self.bytes, at + 8)?, members: members.collect::<Option<_>>()? })
    }

    /// The number of arguments of the function to which a type points.
    pub fn arguments(&self, pointer: u32) -> Option<usize> {
        let pointer = *self.types.get(pointer as usize)?;
        let function = *self.types.get(half(&self.bytes, pointer + 8)? as usize)?;
        let is_function = self.kind(pointer) == Some(PTR) && self.kind(function) == Some(FUNC_PROTO);
        is_function.then(|| self.entries(function))?
    }

    fn kind(&self, at: usize) -> Option<u32> {
        Some(half(&self.bytes, at + 4)? >> 24 & 0x1f)
    }

    fn entries(&self, at: usize) -> Option<usize> {
        Some((half(&self.bytes, at + 4)? & 0xffff) as usize)
    }

    fn name(&self, at: usize) -> Option<&str> {
        let string = self.bytes.get(self.strings_at.checked_add(half(&self.bytes, at)? as usize)?..)?;
        std::str::from_utf8(string.split(|byte| *byte == 0).next()?).ok()
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type information of `struct ops { int (*call)(int, int); int last; }`.
    fn information() -> Vec<u8> {
        let strings = b"\0int\0ops\0call\0last\0";
        let kind = |kind: u32, entries: u32| kind << 24 | entries;
        let types: [&[u32]; 4] = [
            &[1, kind(1, 0), 4, 32],
            &[0, kind(FUNC_PROTO, 2), 1, 0, 1, 0, 1],
            &[0, kind(PTR, 0), 2],
            &[5, kind(STRUCT, 2), 16, 9, 3, 0, 14, 1, 64],
        ];
        let types: Vec<u8> = types.concat().into_iter().flat_map(u32::to_ne_bytes).collect();
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for half in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            bytes.extend(half.to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_structure_has_its_members_where_the_compiler_put_them() {
        let types = KernelTypes::parse(information()).unwrap();
        let structure = types.structure("ops").unwrap();
        assert_eq!((structure.id, structure.bytes), (4, 16));
        let (number, last) = structure.member("last").unwrap();
        assert_eq!((number, last.at_byte, last.type_id), (1, 8, 1));
        let (_, call) = structure.member("call").unwrap();
        assert_eq!(types.arguments(call.type_id), Some(2));
        assert_eq!(types.arguments(last.type_id), None);
        assert_eq!(types.structure("int"), None);
    }

    #[test]
    fn what_is_cut_or_unknown_is_refused() {
        let whole = information();
        for len in 0..whole.len() {
            let cut = KernelTypes::parse(whole[..len].to_vec());
            assert!(
                cut.is_none_or(|types| types.structure("ops").is_none_or(|cut| cut.members.len() == 2)),
                "{len}"
            );
        }
        let mut unknown = whole;
        unknown[24 + 7] = 31;
        assert!(KernelTypes::parse(unknown).is_none());
    }

    #[test]
    fn the_running_kernel_has_congestion_controls() {
        let Some(types) = KernelTypes::read().unwrap() else { return };
        let operations = types.structure("tcp_congestion_ops").unwrap();
        assert!(operations.member("ssthresh").is_some() && operations.member("name").is_some());
    }
}

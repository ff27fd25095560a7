//! C code on this machine, and numbers to try it with.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pseudorandom numbers, the same in every run (SplitMix64).
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    pub fn one_in(&mut self, chance: u64) -> bool {
        self.next().is_multiple_of(chance)
    }
}

/// The C code of `name` compiled for this machine; `None`, with a message, if there is no compiler.
pub fn compiled(name: &str, directory: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = directory.join(name);
    let compile = |checks: &[&str]| {
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]).args(checks);
        cc.arg(here.join(format!("{name}.c"))).arg("-o").arg(&program).output()
    };
    // The kernel's compiler could treat undefined behaviour in the C code differently.
    let checked = compile(&["-fsanitize=undefined", "-fno-sanitize-recover=all"]);
    let Ok(checked) = checked else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no C compiler: THE C WAS NOT COMPARED WITH THE RUST");
        return None;
    };
    if !checked.status.success() {
        let plain = compile(&[]).unwrap();
        assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    }
    Some(program)
}

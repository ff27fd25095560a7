//! Passes on the versions of the stacks, which stand in the lock file.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    for stack in ["quiche", "tquic", "msquic"] {
        let version = lock
            .split(&format!("name = \"{stack}\"\nversion = \""))
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_else(|| panic!("{stack} in Cargo.lock"));
        println!("cargo::rustc-env={}_VERSION={version}", stack.to_uppercase());
    }
}

//! Passes on the version of quiche, which stands in the lock file.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    let version = lock
        .split("name = \"quiche\"\nversion = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("quiche in Cargo.lock");
    println!("cargo::rustc-env=QUICHE_VERSION={version}");
}

//! Prints the CRD of the types: `cargo run --quiet --example crd > crd.yaml`.

fn main() {
    print!("{}", @LIB@::crd());
}

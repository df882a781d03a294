//! Has the Rust compiler say how the structures of `abi/` lie in memory, for the C header (`c_header::layouts`): writes the table of
//! their names and fields, with `size_of` and `offset_of`, so that nobody has to keep one.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};
use syn::{Attribute, Fields, Item};

const ABI: &str = "../../abi/src";

fn main() {
    println!("cargo::rerun-if-changed={ABI}");
    let mut table = String::from("&[\n");
    let mut files: Vec<_> = fs::read_dir(ABI).expect("there is abi/src").flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let module = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("abi is text");
        // What is no Rust is reported where abi itself is compiled.
        for item in syn::parse_file(&text).map(|file| file.items).unwrap_or_default() {
            add(&mut table, &module, &item);
        }
    }
    table.push(']');
    let to = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&to).join("layouts.rs"), table).expect("the build folder can be written");
}

fn add(table: &mut String, module: &str, item: &Item) {
    let Item::Struct(item) = item else { return };
    let Fields::Named(fields) = &item.fields else { return };
    if !item.attrs.iter().any(is_repr_c) {
        return;
    }
    let kind = format!("abi::{module}::{}", item.ident);
    let offsets: String = fields
        .named
        .iter()
        .filter_map(|field| field.ident.as_ref())
        .fold(String::new(), |all, field| format!("{all}(\"{field}\", std::mem::offset_of!({kind}, {field})), "));
    let name = &item.ident;
    writeln!(table, "Layout {{ name: \"{name}\", bytes: size_of::<{kind}>(), offsets: &[{offsets}] }},")
        .expect("writing to a String does not fail");
}

fn is_repr_c(attribute: &Attribute) -> bool {
    let mut is_c = false;
    if attribute.path().is_ident("repr") {
        // `align(…)` and its like are no words of their own; what follows them is not looked at.
        let _ = attribute.parse_nested_meta(|meta| {
            is_c |= meta.path.is_ident("C");
            Ok(())
        });
    }
    is_c
}

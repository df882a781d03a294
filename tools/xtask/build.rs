//! Has the Rust compiler say what the C header needs to know of `abi/`: the values of its constants, and how its structures lie in
//! memory. Writes tables of their names, with the constants themselves, `size_of` and `offset_of`, for `c_header::known`; so nobody has to
//! keep such a table or to compute what the compiler knows.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};
use syn::{Attribute, Field, Fields, ImplItem, Item, Type, Visibility};

const ABI: &str = "../../abi/src";

fn main() {
    println!("cargo::rerun-if-changed={ABI}");
    let mut tables = Tables::default();
    let mut files: Vec<_> = fs::read_dir(ABI).expect("there is abi/src").flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let module = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("abi is text");
        // What is no Rust is reported where abi itself is compiled. The names in lib.rs are those of the modules.
        let items = syn::parse_file(&text).map(|file| file.items).unwrap_or_default();
        if module != "lib" && module != "protocol" {
            tables.items(&module, &items);
        }
    }
    let Tables { constants, layouts } = tables;
    let text = format!("(&[\n{constants}], &[\n{layouts}])");
    let to = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&to).join("known.rs"), text).expect("the build folder can be written");
}

#[derive(Default)]
struct Tables {
    constants: String,
    layouts: String,
}

impl Tables {
    fn items(&mut self, scope: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Const(item) if is_public(&item.vis) => self.constant(scope, scope, &item.ident, &item.ty),
                Item::Struct(item) if is_public(&item.vis) && item.attrs.iter().any(is_repr_c) => {
                    if let Fields::Named(fields) = &item.fields {
                        self.layout(
                            &format!("abi::{scope}::{}", item.ident),
                            &item.ident.to_string(),
                            fields.named.iter(),
                        );
                    }
                }
                Item::Mod(item) if is_public(&item.vis) => {
                    if let Some((_, items)) = &item.content {
                        self.items(&format!("{scope}::{}", item.ident), items);
                    }
                }
                Item::Impl(item) if item.trait_.is_none() && item.generics.params.is_empty() => {
                    let own = word(&item.self_ty);
                    for inner in &item.items {
                        if let ImplItem::Const(item) = inner
                            && is_public(&item.vis)
                        {
                            self.constant(scope, &format!("{scope}::{own}"), &item.ident, &item.ty);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// `scope` is how C knows it, `place` where Rust has it.
    fn constant(&mut self, scope: &str, place: &str, name: &syn::Ident, kind: &Type) {
        let inner = match word(kind).as_str() {
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => "",
            "Endpoint" | "GrantId" => ".0",
            _ => return,
        };
        line(&mut self.constants, format_args!("(\"{scope}::{name}\", abi::{place}::{name}{inner} as i128),"));
    }

    fn layout<'a>(&mut self, place: &str, name: &str, fields: impl Iterator<Item = &'a Field>) {
        line(&mut self.layouts, format_args!("Layout {{ name: \"{name}\", bytes: size_of::<{place}>(), fields: &["));
        for field in fields {
            let Some(ident) = &field.ident else { continue };
            let count = match &field.ty {
                Type::Array(_) => format!("Some(count(|whole: &{place}| &whole.{ident}))"),
                _ => "None".to_string(),
            };
            let offset = format!("std::mem::offset_of!({place}, {ident})");
            line(&mut self.layouts, format_args!("Place {{ name: \"{ident}\", offset: {offset}, count: {count} }},"));
        }
        line(&mut self.layouts, format_args!("] }},"));
    }
}

fn line(text: &mut String, line: std::fmt::Arguments) {
    writeln!(text, "{line}").expect("writing to a String does not fail");
}

/// The last word of a type's name.
fn word(kind: &Type) -> String {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
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

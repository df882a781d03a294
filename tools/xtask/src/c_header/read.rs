//! Reads a file of `abi/`: its public constants and structures, with their comments, in their order.

use super::known;
use anyhow::{Context, Result, bail};
use syn::{Attribute, Expr, Fields, ImplItem, Item, ItemConst, ItemStruct, Lit, Meta, Type, Visibility};

/// A file of `abi/`.
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its first paragraph.
    pub doc: Vec<String>,
    /// Its items.
    pub entries: Vec<Entry>,
}

/// Something that C gets.
pub enum Entry {
    /// A comment on what follows, up to the next entry of another module.
    Heading(Vec<String>),
    /// An integer.
    Constant {
        /// Modules and types it is in, and its name.
        path: Vec<String>,
        /// Its value.
        value: i128,
        /// Its Rust type.
        kind: String,
        /// Its comment.
        doc: Vec<String>,
    },
    /// A structure.
    Structure {
        /// Its name in Rust.
        name: String,
        /// Its alignment, when it is more than its fields'.
        align: Option<u64>,
        /// Its fields.
        fields: Vec<Field>,
        /// Its comment.
        doc: Vec<String>,
    },
}

/// A field of a structure.
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its Rust type, or its elements'.
    pub kind: String,
    /// Its comment.
    pub doc: Vec<String>,
}

/// Types of constants that C gets.
const INTEGERS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "Endpoint", "GrantId", "i16"];

/// Reads the file `name`, whose text is `text`.
///
/// # Errors
/// When it holds something public that has no form in C.
pub fn module(name: &str, text: &str) -> Result<Module> {
    let file = syn::parse_file(text).context("is no Rust")?;
    let mut reader = Reader { entries: Vec::new() };
    reader.items(&[name.to_string()], &file.items)?;
    let entries = reader.entries;
    Ok(Module { name: name.to_string(), doc: first_paragraph(doc(&file.attrs)), entries })
}

struct Reader {
    entries: Vec<Entry>,
}

impl Reader {
    fn items(&mut self, scope: &[String], items: &[Item]) -> Result<()> {
        for item in items {
            match item {
                Item::Const(item) if is_public(&item.vis) => {
                    self.constant(scope, item).with_context(|| format!("the constant {}", item.ident))?;
                }
                Item::Struct(item) if is_public(&item.vis) => {
                    self.structure(item).with_context(|| format!("the structure {}", item.ident))?;
                }
                Item::Mod(item) if is_public(&item.vis) => {
                    if let Some((_, items)) = &item.content {
                        self.entries.push(Entry::Heading(doc(&item.attrs)));
                        self.items(&with(scope, &item.ident.to_string()), items)?;
                    }
                }
                Item::Impl(item) if item.trait_.is_none() => self.associated(scope, item)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Constants of a type, such as `Endpoint::ANY`: the file is named after the type.
    fn associated(&mut self, scope: &[String], item: &syn::ItemImpl) -> Result<()> {
        for inner in &item.items {
            if let ImplItem::Const(constant) = inner
                && is_public(&constant.vis)
                && let Some(kind) = integer(&constant.ty)
            {
                let name = constant.ident.to_string();
                self.add(scope, &name, kind, doc(&constant.attrs))?;
            }
        }
        Ok(())
    }

    fn constant(&mut self, scope: &[String], item: &ItemConst) -> Result<()> {
        // Tables of texts are for Rust.
        let Some(kind) = integer(&item.ty) else { return Ok(()) };
        self.add(scope, &item.ident.to_string(), kind, doc(&item.attrs))
    }

    fn add(&mut self, scope: &[String], name: &str, kind: String, doc: Vec<String>) -> Result<()> {
        let path = with(scope, name);
        let value =
            known::value(&path.join("::")).with_context(|| format!("{name} was not there when xtask was built"))?;
        self.entries.push(Entry::Constant { path, value, kind, doc });
        Ok(())
    }

    fn structure(&mut self, item: &ItemStruct) -> Result<()> {
        let Some(align) = representation(&item.attrs)? else { return Ok(()) };
        let Fields::Named(named) = &item.fields else { return Ok(()) };
        let fields = named.named.iter().map(|field| {
            let name = field.ident.as_ref().context("a field without a name")?.to_string();
            let kind = match &field.ty {
                Type::Array(array) => last_word(&array.elem)?,
                single => last_word(single)?,
            };
            Ok(Field { name, kind, doc: doc(&field.attrs) })
        });
        let fields = fields.collect::<Result<_>>()?;
        let name = item.ident.to_string();
        self.entries.push(Entry::Structure { name, align: align.filter(|&a| a > 0), fields, doc: doc(&item.attrs) });
        Ok(())
    }
}

/// The alignment that `#[repr(C, align(…))]` asks for, 0 for none; `None` without `repr(C)`.
fn representation(attributes: &[Attribute]) -> Result<Option<Option<u64>>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("repr")) else {
        return Ok(None);
    };
    let (mut is_c, mut align) = (false, None);
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("align") {
            let content;
            syn::parenthesized!(content in meta.input);
            align = Some(content.parse::<syn::LitInt>()?.base10_parse()?);
        }
        is_c |= meta.path.is_ident("C");
        Ok(())
    })?;
    Ok(is_c.then_some(align))
}

fn integer(kind: &Type) -> Option<String> {
    last_word(kind).ok().filter(|name| INTEGERS.contains(&name.as_str()))
}

fn last_word(kind: &Type) -> Result<String> {
    match kind {
        Type::Path(path) => Ok(path.path.segments.last().context("a type without a name")?.ident.to_string()),
        _ => bail!("a type that C does not have"),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The lines of a doc comment.
fn doc(attributes: &[Attribute]) -> Vec<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_string()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect()
}

fn first_paragraph(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().take_while(|line| !line.is_empty()).collect()
}

fn with(scope: &[String], name: &str) -> Vec<String> {
    scope.iter().cloned().chain([name.to_string()]).collect()
}

//! Who may join containers that do not say it themselves: arguments of the system file.

use m3ipc::descriptor::{CONTAINER_OPEN, ContainerInfo};

/// Reads `any`, `uid=N`, `gid=N` and `capability=N`, with blanks between; without them root alone may. `report`: learns what is none of these, or
/// has no room.
pub fn parse(arguments: &str, mut report: impl FnMut(&str)) -> ContainerInfo {
    let mut defaults = ContainerInfo::default();
    for word in arguments.split_ascii_whitespace() {
        if !accept(&mut defaults, word) {
            report(word);
        }
    }
    defaults
}

fn accept(defaults: &mut ContainerInfo, word: &str) -> bool {
    if word == "any" {
        defaults.flags |= CONTAINER_OPEN;
        return true;
    }
    let Some((key, value)) = word.split_once('=') else { return false };
    let Ok(value) = value.parse::<u32>() else { return false };
    let set = match key {
        "uid" => &mut defaults.users,
        "gid" => &mut defaults.groups,
        "capability" if value < u64::BITS => {
            defaults.capabilities |= 1 << value;
            return true;
        }
        _ => return false,
    };
    // 0 is an entry that is free; root needs none.
    let free = set.iter_mut().find(|id| **id == 0);
    free.is_some_and(|free| {
        *free = value;
        value != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_users_groups_and_capabilities() {
        let mut wrong = std::vec::Vec::new();
        let defaults =
            parse("uid=1000 gid=50 gid=51 capability=21 uid=root other=1 capability=64 uid=0 what", |word| {
                wrong.push(std::string::String::from(word));
            });
        assert_eq!(
            (defaults.users[..2].to_vec(), defaults.groups[..3].to_vec()),
            ([1000, 0].into(), [50, 51, 0].into())
        );
        assert_eq!((defaults.capabilities, defaults.flags), (1 << 21, 0));
        assert_eq!(wrong, ["uid=root", "other=1", "capability=64", "uid=0", "what"]);
        assert_eq!(parse("any", |_| panic!()).flags, CONTAINER_OPEN);
        let mut refused = 0;
        parse("uid=1 uid=2 uid=3 uid=4 uid=5 uid=6 uid=7 uid=8 uid=9", |_| refused += 1);
        assert_eq!(refused, 1, "there is room for eight");
    }
}

//! apt's output as Debian 12 prints it.

use super::*;

const POLICY: &str = "\
Package files:
 100 /x/status
     release a=now
 500 http://mirror/debian-security bookworm-security/main amd64 Packages
     release v=12,o=Debian,a=stable-security,n=bookworm-security,l=Debian-Security,c=main,b=amd64
     origin mirror
 500 http://other/x nodistro/main amd64 Packages
     release o=. nodistro,a=nodistro,n=nodistro,l=. nodistro,c=main,b=amd64
     origin other
Pinned packages:
";

fn package(name: &str, version: &str, architecture: &str) -> Package {
    Package { name: name.into(), version: version.into(), architecture: architecture.into() }
}

#[test]
fn a_package_has_the_file_name_that_apt_gives_it() {
    let line = "Inst zlib1g (1:1.2.13.dfsg-1 Debian:12.15/oldstable [amd64])";
    let read = parse_package(line).expect("is understood");
    assert_eq!(read, package("zlib1g", "1:1.2.13.dfsg-1", "amd64"));
    assert_eq!(read.file(), "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb");
}

#[test]
fn a_package_may_be_in_several_suites_of_debian_and_have_breaks_after_it() {
    let line = "Inst libuv1 (1.44-1+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [all]) [libc6:amd64 ]";
    assert_eq!(parse_package(line).expect("is understood"), package("libuv1", "1.44-1+deb12u1", "all"));
}

#[test]
fn a_package_of_another_origin_is_refused() {
    let line = "Inst nodejs (20.1-1nodesource1 . nodistro:nodistro [amd64])";
    let refusal = parse_package(line).expect_err("was accepted").to_string();
    assert!(refusal.contains("nodejs") && refusal.contains("not Debian's"), "{refusal}");
}

#[test]
fn strange_lines_are_shown() {
    let refusal = parse_package("Inst what").expect_err("was accepted").to_string();
    assert!(refusal.ends_with("Inst what"), "{refusal}");
}

#[test]
fn other_sources_are_pinned_away_and_debian_keeps_its_priorities() {
    let releases = releases(POLICY);
    assert_eq!(releases.iter().map(Release::is_debian).collect::<Vec<_>>(), [false, true]);
    let text = preferences(&releases);
    assert_eq!(text.matches("Pin: ").count(), 1);
    assert!(text.contains("Pin: release o=. nodistro,a=nodistro") && text.contains("Pin-Priority: -1"), "{text}");
}

#[test]
fn a_machine_without_debian_is_told_so() {
    let policy: String =
        POLICY.lines().filter(|line| !line.contains("o=Debian")).map(|line| format!("{line}\n")).collect();
    let output = Output { status: std::process::ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
    let refusal = no_debian(&output, &releases(&policy));
    assert!(refusal.contains("is Debian's") && refusal.contains("o=. nodistro"), "{refusal}");
}

#[test]
fn the_progress_of_a_download_is_its_number_and_name() {
    let line = "Get:12 http://mirror/debian bookworm/main amd64 libssl3 amd64 3.0.22-1 [2040 kB]";
    assert_eq!(download_progress(line), Some(("12", "libssl3")));
    assert_eq!(download_progress("Fetched 47.8 MB in 0s (196 MB/s)"), None);
}

#[test]
fn an_unknown_name_comes_with_similar_ones_or_with_how_to_search() {
    assert!(unknown("pyton3", &["python3"]).contains("similar names: python3"));
    assert!(unknown("nothing-like-it", &[]).contains("apt-cache search"));
}

#[test]
fn conflicts_are_shown_without_the_rest() {
    let printed = "Reading package lists...\n exim4-config : Conflicts: postfix but 3.7 is to be installed\n postfix : Conflicts: mail-transport-agent\n";
    assert_eq!(
        unmet(printed),
        "exim4-config : Conflicts: postfix but 3.7 is to be installed; postfix : Conflicts: mail-transport-agent; "
    );
}

#[test]
fn a_virtual_package_names_those_that_provide_it() {
    let printed = "Package awk is a virtual package provided by:\n  original-awk 2022-1\n  mawk 1.3\n\n";
    assert!(without_candidate("awk", printed).ends_with("name one of them: original-awk, mawk"));
}

#[test]
fn a_package_of_other_sources_alone_is_refused() {
    assert!(without_candidate("other", "").contains("Debian's suites have no package 'other'"));
}

//! Journals in a page that shows them: a report in one file.

/// Where the page of a report has its journals.
const PLACE: &str = "<!-- journals -->";

/// The page of a report (`report.txt` of a built page) with journals in it, each by its name and as the base64 of its gzip;
/// `None` when there is no place for them in `page`.
///
/// ```
/// use capo_core::journal::in_report;
///
/// let page = "<body><!-- journals --></body>";
/// let journals = [("a \"b\".jsonl".to_owned(), "H4sI".to_owned())];
/// assert_eq!(
///     in_report(page, &journals).as_deref(),
///     Some("<body><script type=\"application/gzip\" data-journal=\"a &quot;b&quot;.jsonl\">H4sI</script>\n</body>")
/// );
/// assert_eq!(in_report("<body></body>", &journals), None);
/// ```
pub fn in_report(page: &str, journals: &[(String, String)]) -> Option<String> {
    let (before, after) = page.split_once(PLACE)?;
    let mut report = before.to_owned();
    for (name, packed) in journals {
        let name = name
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;");
        report.extend([
            "<script type=\"application/gzip\" data-journal=\"",
            name.as_str(),
            "\">",
            packed.as_str(),
            "</script>\n",
        ]);
    }
    report.push_str(after);
    Some(report)
}

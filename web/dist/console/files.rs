&[
    ("assets/chunk-EXSRTRYS.js", include_bytes!("assets/chunk-EXSRTRYS.js")),
    ("assets/console-043D827B.css", include_bytes!("assets/console-043D827B.css")),
    ("assets/console-HPHPKZKK.js", include_bytes!("assets/console-HPHPKZKK.js")),
    ("assets/icon-A78D62FA.svg", include_bytes!("assets/icon-A78D62FA.svg")),
    ("assets/page-7WYLXG26.js", include_bytes!("assets/page-7WYLXG26.js")),
    ("index.html", include_bytes!("index.html")),
]

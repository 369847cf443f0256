"""The rules of the source audit: each looks at one module; `layers` alone looks at all of them."""

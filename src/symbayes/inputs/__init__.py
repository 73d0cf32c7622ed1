"""What a user gives: data and beliefs, checked, and brought into the form that samplers want."""
